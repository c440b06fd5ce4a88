-- Principals: who may speak over HTTP, and as what. Secrets never reach the record, only their digests.

local ROLES = { producer = true, node = true, operator = true, viewer = true }

-- A digest, or nil where none is given.
local function digest(value, name)
  return value ~= nil and value ~= '' and hf.hash(value, name) or nil
end

function hf.read_new_principal(argv)
  local new = {
    name = hf.id(argv[1], 'name'),
    role = argv[2] or '',
    host = argv[3] ~= '' and hf.host_id(argv[3]) or nil,
    scopes = argv[4] or '',
    any_sender = hf.integer(argv[5] or 0, 'any_sender') == 1,
    token_sha256 = digest(argv[6], 'token_sha256'),
    certificate_sha256 = digest(argv[7], 'certificate_sha256'),
  }
  if not ROLES[new.role] then
    hf.refuse('INVALID_ARGUMENT', 'a role is producer, node, operator or viewer, not "' .. new.role .. '"')
  end
  if (new.role == 'node') ~= (new.host ~= nil) then
    hf.refuse('INVALID_ARGUMENT', 'a node principal is bound to one host, and no other is')
  end
  if not new.token_sha256 and not new.certificate_sha256 then
    hf.refuse('INVALID_ARGUMENT', 'a principal needs a token or a certificate')
  end
  return new
end

-- Whether the row is the one that this call, repeated, made the first time.
local function is_same(row, new)
  return row[1] == new.role and (row[2] or nil) == new.host and (row[3] or nil) == new.token_sha256
    and (row[4] or nil) == new.certificate_sha256
end

local function store(ctx, new, actor)
  local row = { 'HSET', hf.key.principal(ctx.tag, new.name), 'role', new.role, 'created_at', ctx.now, 'created_by', actor }
  for _, name in ipairs({ 'host', 'token_sha256', 'certificate_sha256' }) do
    if new[name] then
      row[#row + 1] = name
      row[#row + 1] = new[name]
    end
  end
  if new.scopes ~= '' then
    row[#row + 1] = 'scopes'
    row[#row + 1] = new.scopes
  end
  if new.any_sender then
    row[#row + 1] = 'any_sender'
    row[#row + 1] = 1
  end
  redis.call(unpack(row))
  redis.call('ZADD', hf.key.principals(ctx.tag), ctx.now, new.name)
  if new.certificate_sha256 then
    redis.call('HSET', hf.key.certificates(ctx.tag), new.certificate_sha256, new.name)
  end
end

-- Adds a principal under a name that was never used, or answers the first time again.
function hf.add_principal(ctx, new, actor)
  local row = redis.call('HMGET', hf.key.principal(ctx.tag, new.name), 'role', 'host', 'token_sha256',
    'certificate_sha256', 'revoked_at', 'created_at')
  if row[1] then
    if is_same(row, new) and not row[5] then return tonumber(row[6]) end
    hf.refuse('PRINCIPAL_EXISTS', 'principal "' .. new.name .. '" was added before' .. (row[5] and ' and revoked' or '') .. '; names are not used twice')
  end
  local pinned = new.certificate_sha256 and redis.call('HGET', hf.key.certificates(ctx.tag), new.certificate_sha256)
  if pinned then hf.refuse('PRINCIPAL_EXISTS', 'the certificate is pinned to principal "' .. pinned .. '"') end
  store(ctx, new, actor)
  hf.finish(ctx, 'add_principal', actor, { 'principal', new.name, 'role', new.role })
  return ctx.now
end

-- Ends a principal for good; its row stays, so that the name says who it was.
function hf.revoke_principal(ctx, name, actor, reason)
  local key = hf.key.principal(ctx.tag, name)
  local row = redis.call('HMGET', key, 'role', 'certificate_sha256', 'revoked_at')
  if not row[1] then hf.refuse('PRINCIPAL_NOT_FOUND', 'no principal "' .. name .. '"') end
  if row[3] then return tonumber(row[3]) end
  redis.call('HSET', key, 'revoked_at', ctx.now, 'revoked_by', actor, 'revoked_reason', reason)
  if row[2] then redis.call('HDEL', hf.key.certificates(ctx.tag), row[2]) end
  hf.finish(ctx, 'revoke_principal', actor, { 'principal', name, 'reason', reason })
  return ctx.now
end
