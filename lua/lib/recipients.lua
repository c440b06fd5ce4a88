-- Recipients: `host:<h>` or `session:<s>`, and the host that each is routed to.

-- Of a recipient that was checked.
function hf.is_session(recipient) return string.byte(recipient, 1) == 115 end -- s

-- Refuses what is no recipient.
function hf.check_recipient(text)
  -- Most are this; the rest is told what is wrong with it.
  if #text <= 68 and string.find(text, '^host:[a-z0-9][a-z0-9._-]*$') and string.find(text, '[a-z0-9]$') then return end
  if string.sub(text, 1, 5) == 'host:' then
    hf.host_id(string.sub(text, 6))
  elseif string.sub(text, 1, 8) == 'session:' then
    hf.id(string.sub(text, 9), 'session')
  else
    hf.refuse('INVALID_ARGUMENT', 'a recipient is host:<h> or session:<s>, not "' .. text .. '"')
  end
end

-- Named twice is named once.
function hf.read_recipients(argv, first, last)
  local recipients, seen, total = {}, {}, 0
  for at = first, last do
    local text = argv[at]
    if not seen[text] then
      hf.check_recipient(text)
      seen[text] = true
      total = total + 1
      recipients[total] = text
    end
  end
  return recipients
end

-- The host a recipient is routed to now, and its session; refuses NO_ROUTE.
function hf.route(ctx, recipient)
  if not hf.is_session(recipient) then return string.sub(recipient, 6), nil end
  local session = string.sub(recipient, 9)
  return hf.route_session(ctx, session), session
end
