/** What the server of counters runs on kept answers: each script is one step, so that sums and bounds hold for all processes. */
import type { CounterScript } from '../../common/domain/counters.ts';

/**
 * KEYS: one, that names the hash slot; all others begin with it. A member is the account and the key. `data`, `sizes`, `groups`, `vectors` by
 * member; `totals` by account, and of all under `*`; `expiry` by the time of its end; `order` and `order:ACCOUNT` by last use;
 * `group:ACCOUNT:GROUP` by the time of storing.
 */
const shared = `
local base = KEYS[1]
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
local micros = tonumber(t[1]) * 1000000 + tonumber(t[2])
local function add(account, bytes)
  if redis.call('HINCRBY', base .. ':totals', account, bytes) <= 0 then redis.call('HDEL', base .. ':totals', account) end
end
local function drop(member)
  local bytes = redis.call('HGET', base .. ':sizes', member)
  if not bytes then return end
  local account = string.match(member, '^(%S*) ')
  local group = redis.call('HGET', base .. ':groups', member)
  if group then redis.call('ZREM', base .. ':group:' .. account .. ':' .. group, member) end
  for _, name in ipairs({ 'data', 'sizes', 'groups', 'vectors' }) do redis.call('HDEL', base .. ':' .. name, member) end
  for _, name in ipairs({ 'expiry', 'order', 'order:' .. account }) do redis.call('ZREM', base .. ':' .. name, member) end
  add(account, 0 - tonumber(bytes))
  add('*', 0 - tonumber(bytes))
end
local function total(account) return tonumber(redis.call('HGET', base .. ':totals', account) or '0') end
`;

/** ARGV: account, key. Returns the entry or an empty text, and whether another process makes it. */
export const findScript: CounterScript = {
  name: 'gatewayCacheFind',
  lua: `${shared}
local member = ARGV[1] .. ' ' .. ARGV[2]
local made = redis.call('EXISTS', base .. ':made:' .. member)
local ends = redis.call('ZSCORE', base .. ':expiry', member)
if not ends then return { '', made } end
if tonumber(ends) <= now then
  drop(member)
  return { '', made }
end
redis.call('ZADD', base .. ':order', micros, member)
redis.call('ZADD', base .. ':order:' .. ARGV[1], micros, member)
return { redis.call('HGET', base .. ':data', member) or '', made }
`,
};

/** ARGV: account, key, owner, milliseconds. Returns 1 if it is this owner's now. */
export const claimScript: CounterScript = {
  name: 'gatewayCacheClaim',
  lua: `${shared}
if redis.call('SET', base .. ':made:' .. ARGV[1] .. ' ' .. ARGV[2], ARGV[3], 'NX', 'PX', ARGV[4]) then return 1 end
return 0
`,
};

/** ARGV: account, key, owner, milliseconds; 0: it is released. */
export const holdScript: CounterScript = {
  name: 'gatewayCacheHold',
  lua: `${shared}
local name = base .. ':made:' .. ARGV[1] .. ' ' .. ARGV[2]
if redis.call('GET', name) ~= ARGV[3] then return 0 end
if ARGV[4] == '0' then redis.call('DEL', name) else redis.call('PEXPIRE', name, ARGV[4]) end
return 1
`,
};

/** ARGV: account, key, entry, bytes, lifetime, bound of all, bound of the account, group and vector, which may be empty. */
export const putScript: CounterScript = {
  name: 'gatewayCachePut',
  lua: `${shared}
local account, bytes = ARGV[1], tonumber(ARGV[4])
local member = account .. ' ' .. ARGV[2]
local most, share = tonumber(ARGV[6]), tonumber(ARGV[7])
drop(member)
for _, ended in ipairs(redis.call('ZRANGEBYSCORE', base .. ':expiry', '-inf', now, 'LIMIT', 0, 1000)) do drop(ended) end
if bytes > most or bytes > share then return 0 end
local function makeRoom(order, name, bound)
  while total(name) + bytes > bound do
    local first = redis.call('ZRANGE', base .. order, 0, 0)[1]
    if not first then break end
    drop(first)
  end
end
makeRoom(':order:' .. account, account, share)
makeRoom(':order', '*', most)
redis.call('HSET', base .. ':data', member, ARGV[3])
redis.call('HSET', base .. ':sizes', member, ARGV[4])
redis.call('ZADD', base .. ':expiry', now + tonumber(ARGV[5]), member)
redis.call('ZADD', base .. ':order', micros, member)
redis.call('ZADD', base .. ':order:' .. account, micros, member)
if ARGV[8] ~= '' then
  redis.call('HSET', base .. ':groups', member, ARGV[8])
  redis.call('HSET', base .. ':vectors', member, ARGV[9])
  redis.call('ZADD', base .. ':group:' .. account .. ':' .. ARGV[8], micros, member)
end
add(account, bytes)
add('*', bytes)
return 1
`,
};

/** ARGV: account, group, how many. Returns members and vectors in turn. */
export const nearScript: CounterScript = {
  name: 'gatewayCacheNear',
  lua: `${shared}
local found = {}
for _, member in ipairs(redis.call('ZREVRANGE', base .. ':group:' .. ARGV[1] .. ':' .. ARGV[2], 0, tonumber(ARGV[3]) - 1)) do
  local vector = redis.call('HGET', base .. ':vectors', member)
  if vector then
    found[#found + 1] = member
    found[#found + 1] = vector
  end
end
return found
`,
};

/** ARGV: the account, or `*`. */
export const bytesScript: CounterScript = { name: 'gatewayCacheBytes', lua: `${shared} return total(ARGV[1])` };
