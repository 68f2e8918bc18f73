/** The limiter's decision in Lua, run at the counters: the same arithmetic as decide.ts, on the server's time. */
import type { CounterScript } from '../common/domain/counters.ts';

/**
 * Code that both scripts share. Lua's numbers are doubles like JavaScript's; `%.17g` prints them without loss. A bucket
 * is "debt charged since at"; slots are a sorted set of operation ids by expiry.
 */
const arithmetic = `
local function server_time(given)
  if given ~= '' then return tonumber(given) end
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end
local function exact(number) return string.format('%.17g', number) end
local function read(key, limit, now)
  local text = redis.call('GET', key)
  if not text then return { 0, 0, 0, now } end
  local debt, charged, since, at = string.match(text, '^(%S+) (%S+) (%S+) (%S+)$')
  debt, charged, since, at = tonumber(debt), tonumber(charged), tonumber(since), tonumber(at)
  if now <= at then return { debt, charged, since, at } end
  return { math.max(0, debt - (now - at) * limit), charged, since, now }
end
local function write(key, gauge, limit)
  local whole = 1
  if limit > 0 then whole = math.ceil(gauge[1] / limit) end
  -- A whole bucket is an absent one.
  redis.call('SET', key, exact(gauge[1]) .. ' ' .. exact(gauge[2]) .. ' ' .. exact(gauge[3]) .. ' ' .. exact(gauge[4]),
    'PX', exact(math.max(1, whole) + 1000))
end
local function charge(gauge, period, units)
  local ticks = units * period
  if gauge[1] == 0 then return { ticks, units, gauge[4], gauge[4] } end
  return { gauge[1] + ticks, gauge[2] + units, gauge[3], gauge[4] }
end
`;

/**
 * KEYS: one bucket for each demand. ARGV: the time or '' for the server's, the operation's id, then for each demand limit,
 * period, units, lifetime of a slot. Returns the index of the refusing demand or -1, the wait, and four numbers of each
 * bucket, all as text.
 */
export const takeScript: CounterScript = {
  name: 'gatewayTake',
  lua: `${arithmetic}
local now, id = server_time(ARGV[1]), ARGV[2]
local gauges, refused, wait = {}, -1, 0
for index, key in ipairs(KEYS) do
  local base = index * 4 - 1
  local limit, period, units = tonumber(ARGV[base]), tonumber(ARGV[base + 1]), tonumber(ARGV[base + 2])
  local needed = 0
  if period == 0 then
    local taken = redis.call('ZCARD', key)
    if taken >= limit then
      redis.call('ZREMRANGEBYSCORE', key, '-inf', exact(now))
      taken = redis.call('ZCARD', key)
    end
    gauges[index] = { taken, 0, 0, now }
    if taken + units > limit then needed = 1000 end
  else
    gauges[index] = read(key, limit, now)
    if limit <= 0 then
      needed = period
    else
      local excess = gauges[index][1] + (math.min(units, limit) - limit) * period
      if excess > 0 then needed = math.ceil(excess / limit) end
    end
  end
  if needed > wait then refused, wait = index - 1, needed end
end
if refused == -1 then
  for index, key in ipairs(KEYS) do
    local base = index * 4 - 1
    local limit, period, units = tonumber(ARGV[base]), tonumber(ARGV[base + 1]), tonumber(ARGV[base + 2])
    if period == 0 then
      local lifetime = tonumber(ARGV[base + 3])
      redis.call('ZADD', key, exact(now + lifetime), id)
      redis.call('PEXPIRE', key, exact(lifetime + 1000))
      gauges[index] = { gauges[index][1] + units, units, now, now }
    else
      gauges[index] = charge(gauges[index], period, math.min(units, limit))
      write(key, gauges[index], limit)
    end
  end
end
local found = { exact(refused), exact(wait) }
for _, gauge in ipairs(gauges) do
  for _, number in ipairs(gauge) do found[#found + 1] = exact(number) end
end
return found
`,
};

/**
 * KEYS: one bucket for each that is given back. ARGV: the time or '', the operation's id, then for each bucket limit, period, units
 * reserved, units used, and the receipt's charged and since.
 */
export const giveBackScript: CounterScript = {
  name: 'gatewayGiveBack',
  lua: `${arithmetic}
local now, id = server_time(ARGV[1]), ARGV[2]
local function settle(key, limit, period, units, used, charged, since)
  local gauge = read(key, limit, now)
  local unused = math.min(units, limit) - math.min(used, 1000000000)
  if unused <= 0 then
    write(key, charge(gauge, period, 0 - unused), limit)
    return
  end
  local younger = gauge[2] - charged
  if since ~= gauge[3] or younger < 0 then
    -- Nothing goes back; what has drained by the limit of this call has drained.
    if gauge[1] > 0 then write(key, gauge, limit) else redis.call('DEL', key) end
    return
  end
  local refund = math.min(unused * period, math.max(0, gauge[1] - younger * period))
  local counted = gauge[2]
  if younger == 0 then counted = counted - unused end
  write(key, { gauge[1] - refund, counted, gauge[3], gauge[4] }, limit)
end
for index, key in ipairs(KEYS) do
  local base = index * 6 - 3
  local function given(place) return tonumber(ARGV[base + place]) end
  if given(1) == 0 then
    redis.call('ZREM', key, id)
  else
    settle(key, given(0), given(1), given(2), given(3), given(4), given(5))
  end
end
return #KEYS
`,
};

/**
 * KEYS: the live processes. ARGV: this process's name, lifetime of a heartbeat in milliseconds. Returns the number of
 * processes.
 */
export const heartbeatScript: CounterScript = {
  name: 'gatewayPresence',
  lua: `
local t = redis.call('TIME')
local now, lasts = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000), tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - lasts)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('PEXPIRE', KEYS[1], lasts)
return redis.call('ZCARD', KEYS[1])
`,
};
