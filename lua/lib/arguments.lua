-- Reading arguments: every value is checked before anything is written.

-- Raises a refusal: the function answers `CODE text` and has changed nothing.
function hf.refuse(code, text)
  error({ refusal = code .. ' ' .. text })
end

-- A whole number from `least` on (0 when not given).
function hf.integer(value, name, least)
  local number = tonumber(value)
  if not number or number % 1 ~= 0 or number < (least or 0) or number > 9007199254740991 then
    hf.refuse('INVALID_ARGUMENT', name .. ' must be a whole number from ' .. (least or 0) .. ', not "' .. tostring(value) .. '"')
  end
  return number
end

-- The same, where an empty string means "none".
function hf.optional_integer(value, name)
  if value == nil or value == '' then return nil end
  return hf.integer(value, name)
end

-- Printable ASCII, 1 to 255 bytes.
function hf.id(value, name)
  if type(value) ~= 'string' or #value == 0 or #value > 255 or string.find(value, '[^\32-\126]') then
    hf.refuse('INVALID_ARGUMENT', name .. ' must be 1 to 255 bytes of printable ASCII')
  end
  return value
end

function hf.optional_id(value, name)
  if value == nil or value == '' then return nil end
  return hf.id(value, name)
end

-- The id of an entry of the log, two numbers of 64 bits; '' where nothing was seen.
function hf.log_id(value, name)
  if value == nil or value == '' then return '' end
  local ms, sequence = string.match(value, '^(%d+)%-(%d+)$')
  for _, part in ipairs({ ms or 'none', sequence or 'none' }) do
    if #part > 20 or string.find(part, '%D') or #part == 20 and part > '18446744073709551615' then
      hf.refuse('INVALID_ARGUMENT', name .. ' must be the id of a log entry, <ms>-<n>, as an answer gave it, not "' .. value .. '"')
    end
  end
  return value
end

-- An id without blanks: it goes into blank-separated lists.
function hf.word(value, name)
  hf.id(value, name)
  if string.find(value, ' ', 1, true) then hf.refuse('INVALID_ARGUMENT', name .. ' holds no blanks') end
  return value
end

-- A SHA-256 digest as lower-case hex.
function hf.hash(value, name)
  if type(value) ~= 'string' or #value ~= 64 or string.find(value, '[^0-9a-f]') then
    hf.refuse('INVALID_ARGUMENT', name .. ' must be a SHA-256 digest in lower-case hex')
  end
  return value
end

-- A host id: [a-z0-9._-], 1 to 63, alphanumeric at both ends; never folded.
function hf.host_id(value)
  if type(value) ~= 'string' or #value > 63 or string.find(value, '[^a-z0-9._-]')
    or not string.find(value, '^[a-z0-9]') or not string.find(value, '[a-z0-9]$') then
    hf.refuse('INVALID_ARGUMENT', 'host must match [a-z0-9._-], 1 to 63 long, alphanumeric at both ends')
  end
  return value
end

-- Free text for people (reasons, actors): 1 to 1024 bytes.
function hf.text(value, name)
  if type(value) ~= 'string' or #value == 0 or #value > 1024 then
    hf.refuse('INVALID_ARGUMENT', name .. ' must be 1 to 1024 bytes of text')
  end
  return value
end

-- Refuses an argument list that is not a whole number of groups of `width`, 1 to 1000 of them.
-- Answers the number of groups.
function hf.groups(argv, first, width)
  local rest = #argv - first + 1
  if rest < width or rest % width ~= 0 or rest > width * 1000 then
    hf.refuse('INVALID_ARGUMENT', 'expected 1 to 1000 items of ' .. width .. ' arguments each, got ' .. rest .. ' arguments')
  end
  return rest / width
end
