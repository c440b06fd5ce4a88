-- Slices: a sweep puts a hub right without being asked, a slice at a time. Each slice answers what it found, what it put
-- right, what it left, and where to go on. The same sweep twice at once does no harm.

function hf.new_slice()
  return { found = 0, repaired = 0, left = 0, cursor = '', notes = {} }
end

-- One thing that was not right; what is told of it names its key.
function hf.tell(slice, text, repaired)
  slice.found = slice.found + 1
  if repaired then slice.repaired = slice.repaired + 1 else slice.left = slice.left + 1 end
  slice.notes[#slice.notes + 1] = text
end

-- Makes an index usable: one of a wrong type is set aside, and told of.
function hf.make_usable(ctx, slice, key, type_name)
  local found = {}
  hf.usable(ctx, key, type_name, found, true)
  for _, each in ipairs(found) do hf.tell(slice, each.what, true) end
end

function hf.slice_reply(ctx, sweep, slice)
  local said = #slice.notes > 0 and { 'notes', table.concat(slice.notes, '; ') } or nil
  hf.finish(ctx, 'sweep_' .. sweep, 'sweep', said)
  return {
    'found', slice.found, 'repaired', slice.repaired, 'left', slice.left, 'cursor', slice.cursor, 'notes', slice.notes,
  }
end
