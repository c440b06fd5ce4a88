-- Problems: what a comparison of the record with itself found, each with a code that programs tell it by and words for
-- people (docs/audit.md lists the codes).

-- `about` names a key or an id, where what is compared is not one row.
function hf.note(found, code, what, repaired, about)
  found[#found + 1] = { code = code, what = what, repaired = repaired and true or false, about = about }
end

-- Moves a key of a wrong type out of the way, where it stays as evidence.
local function set_aside(ctx, key)
  local name = ctx.tag .. ':damaged:' .. string.sub(key, #ctx.tag + 2) .. ':' .. ctx.now
  redis.call('RENAME', key, name)
  return name
end

-- Whether an index can be worked on: of its type, or not there. A key of another type is set aside where repairing.
function hf.usable(ctx, key, type_name, found, repair, about)
  ctx.usable = ctx.usable or {}
  if ctx.usable[key] then return true end
  local type_found = redis.call('TYPE', key)['ok']
  if type_found ~= 'none' and type_found ~= type_name then
    local aside = repair and '; set aside as ' .. set_aside(ctx, key) or ''
    hf.note(found, 'wrong_type', key .. ' is a ' .. type_found .. ', not a ' .. type_name .. aside, repair, about)
    if not repair then return false end
  end
  ctx.usable[key] = true
  return true
end
