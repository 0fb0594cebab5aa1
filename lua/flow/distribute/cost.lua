-- cost.lua: what data-parallel training costs on many workers: how long a step takes that adds up the gradients of p workers, by a model
-- of its messages. A message of n bytes takes latency + n / bandwidth seconds, both ways at once (Thakur, Rabenseifner, Gropp: Optimization
-- of Collective Communication Operations in MPICH, 2005, section 2). A sum of n bytes takes
--
--   ring           2 (p - 1) latency + 2 (p - 1) / p n / bandwidth      (Patarasuk, Yuan: Bandwidth Optimal All-reduce Algorithms for
--                                                                        Clusters of Workstations, 2009, section 3; no fewer bytes do)
--   halving        2 log2 p latency + 2 (p - 1) / p n / bandwidth       (recursive halving and doubling: Thakur 2005, section 4.5); where
--                  p is not a power of two, two messages of n bytes more
--   hierarchical   h workers a host: a ring in each host, over its memory, and between the hosts a ring of their sums
--
-- Before a step the workers tell each other what they bring: 64 bytes to all, in p - 1 messages of a ring, or log2 p of halving.

local errors = require "flow.errors"
local object = require "flow.object"
local signature = require "flow.signature"

local raise = errors.raise
local cost = signature.module "flow.distribute"
local internal = signature.internal(cost)

local FORWARD = 1 / 3             -- of a step's computing: backward multiplies twice as much
local ANNOUNCED = 64              -- bytes
local PACK = 2 ^ 22              -- the library's, which measured steps had (core/train/gradient_buckets.c)
local PACKS = {}                  -- sizes that are tried: 64 KiB to 64 MiB
for power = 16, 26 do PACKS[#PACKS + 1] = 2 ^ power end

---- one sum ---------------------------------------------------------------------------------------------------------------------

-- link: { latency = seconds, bandwidth = bytes a second }.
local function ring(p, bytes, link)
  return 2 * (p - 1) * link.latency + 2 * (p - 1) / p * bytes / link.bandwidth
end

-- Seconds of a sum over p workers by recursive halving and doubling (Rabenseifner): log2(p) rounds each way, and if p is not a power of two
-- an exchange of all bytes before and after. link: { latency = seconds, bandwidth = bytes a second }.
local function halving(p, bytes, link)
  local rounds = math.floor(math.log(p) / math.log(2) + 1e-9)
  local whole = 2 ^ rounds
  local seconds = 2 * rounds * link.latency + 2 * (whole - 1) / whole * bytes / link.bandwidth
  return p == whole and seconds or seconds + 2 * (link.latency + bytes / link.bandwidth)
end

-- host: the link within a host, of `each` workers; the last host may have fewer.
local function hierarchical(p, bytes, link, host, each)
  local hosts = math.ceil(p / each)
  return ring(math.min(p, each), bytes, host) + (hosts > 1 and ring(hosts, bytes, link) or 0)
end

local function announce(p, link, by_halving)
  local messages = by_halving and math.ceil(math.log(p) / math.log(2) - 1e-9) or p - 1
  return messages * link.latency + (p - 1) * ANNOUNCED / link.bandwidth
end

---- one step --------------------------------------------------------------------------------------------------------------------

-- Seconds of a step that computes for `compute` seconds. Gradients come evenly during the backward pass; packs of them are added up one
-- after the other. overlap: the part of its speed that a sum has while the worker computes, 0 to 1.
local function step_seconds(compute, bytes, pack, overlap, sum)
  local count = math.max(1, math.ceil(bytes / pack))
  local seconds, finished = sum(bytes / count), 0
  for i = 1, count do
    local start = math.max(finished, compute * (FORWARD + (1 - FORWARD) * i / count))
    local beside = math.max(0, compute - start) * overlap
    finished = seconds <= beside and start + seconds / overlap or math.max(start, compute) + seconds - beside
  end
  return math.max(compute, finished)
end

-- The size of packs of gradients, of PACKS, with which a step is the shortest; the first of equal ones.
local function best_pack(compute, bytes, overlap, sum)
  local best, least = PACKS[1], math.huge
  for _, pack in ipairs(PACKS) do
    local seconds = step_seconds(compute, bytes, pack, overlap, sum)
    if seconds < least * (1 - 1e-9) then best, least = pack, seconds end
  end
  return best
end

---- fitting ----------------------------------------------------------------------------------------------------------------------

-- The link that a ring of p workers had whose sums of `bytes` took `seconds`: samples = { { bytes, seconds }, ... }. Least squares of
-- relative errors.
function internal.fit_link(samples, p)
  local w, wx, wy, wxx, wxy = 0, 0, 0, 0, 0
  for _, sample in ipairs(samples) do
    local x, y = sample[1], sample[2]
    local weight = 1 / (y * y)
    w, wx, wy, wxx, wxy = w + weight, wx + weight * x, wy + weight * y, wxx + weight * x * x, wxy + weight * x * y
  end
  local slope = (w * wxy - wx * wy) / (w * wxx - wx * wx)
  if not (slope > 0) then raise("the times of the sums do not grow with their size: measure on a machine that is less busy") end
  local start = math.max(0, (wy - slope * wx) / w)
  return { latency = start / (2 * (p - 1)), bandwidth = 2 * (p - 1) / p / slope }
end

-- The overlap with which a ring of p workers has steps of this many seconds: the nearest from 0 to 1.
function internal.fit_overlap(measured, compute, bytes, pack, p, link)
  local function predicted(overlap)
    return step_seconds(compute, bytes, pack, overlap, function(n) return ring(p, n, link) end) + announce(p, link)
  end
  local low, high = 0, 1
  for _ = 1, 40 do
    local middle = (low + high) / 2
    if predicted(middle) > measured then low = middle else high = middle end
  end
  return (low + high) / 2
end

---- for users -------------------------------------------------------------------------------------------------------------------

local Cost = object.class("Cost")

-- The bytes of a model's gradients, as float32. Raises for a model that is not built, or that has nothing to train.
local function bytes_of(model)
  local bytes = 0
  local ok, variables = pcall(function() return model.trainable_variables end)
  if not ok or type(variables) ~= "table" then
    raise("distribute.cost: model is a model that is built, got %s", errors.describe(model))
  end
  for _, v in ipairs(variables) do bytes = bytes + 4 * v.size end
  if bytes == 0 then raise("distribute.cost: the model has no trainable variables: build it, and do not freeze all") end
  return bytes
end

local function check_above(name, value, most)
  if not (value > 0 and value <= most) then
    raise("distribute.cost: %s is a number above 0 and at most %g, got %s", name, most, errors.describe(value))
  end
end

-- Raises unless it is a list of numbers of workers; returns it.
local function check_workers(list)
  if type(list) ~= "table" or errors.check_list("distribute.cost: workers", list) == 0 then
    raise("distribute.cost: workers is a list such as { 8, 64 }, got %s", errors.describe(list))
  end
  for i, p in ipairs(list) do
    if type(p) ~= "number" or p < 2 or p > 2 ^ 24 or p % 1 ~= 0 then
      raise("distribute.cost: entry %d of workers is a whole number from 2, got %s", i, errors.describe(p))
    end
  end
  return list
end

-- What was measured takes the place of what was not given: sums of two workers, and a step of two.
local function fit(given, bytes)
  if not given.sums then return end
  errors.check_list("distribute.cost: sums", given.sums)
  for i, sample in ipairs(given.sums) do
    if type(sample) ~= "table" or type(sample[1]) ~= "number" or type(sample[2]) ~= "number" or not (sample[1] > 0 and sample[2] > 0) then
      raise("distribute.cost: entry %d of sums is { bytes, seconds }, got %s", i, errors.describe(sample))
    end
  end
  local link = internal.fit_link(given.sums, 2)
  given.latency = given.latency or math.max(link.latency, 1e-9)
  given.bandwidth = given.bandwidth or link.bandwidth
  if not given.overlap and given.pair_seconds then
    given.overlap = internal.fit_overlap(given.pair_seconds, given.step_seconds, bytes, PACK, 2, link)
  end
end

-- flow.distribute.cost { model = model, step_seconds = 0.02, latency = 30e-6, bandwidth = 1.2e9 }: what a step of each number of workers
-- takes. step_seconds: of one worker alone; gradient_bytes in place of the model's, in float32. bandwidth in bytes a second. overlap: the
-- part of its speed that a sum has beside computing, 1. sums = { { bytes, seconds }, ... } of two workers, and pair_seconds, of a step of
-- two, give what is not given of these. workers_per_host: for hierarchical sums, which take host_latency and host_bandwidth within a host.
-- bytes_per_pack 0: the best of 64 KiB to 64 MiB for each. The result is a list of { workers, ring =, halving =, hierarchical = }, each
-- { seconds, efficiency (of step_seconds), bytes_per_pack }; print(result) shows it.
signature.takes("{ model?, gradient_bytes?: number, step_seconds: number = 0, latency?: number, bandwidth?: number, overlap?: number, "
  .. "sums?, pair_seconds?: number, workers?, workers_per_host: count = 8, host_latency: number = 1e-6, "
  .. "host_bandwidth: number = 10e9, bytes_per_pack: whole = 0 }")
function cost.cost(given)
  local bytes = given.gradient_bytes or bytes_of(given.model)
  check_above("step_seconds", given.step_seconds, 1e6)
  check_above("gradient_bytes", bytes, 1e15)
  fit(given, bytes)
  for _, name in ipairs { "latency", "bandwidth", "host_latency", "host_bandwidth" } do
    check_above(name, given[name] or 0, name:find("bandwidth") and 1e15 or 1e6)
  end
  local overlap = given.overlap or 1
  if not (overlap >= 0 and overlap <= 1) then raise("distribute.cost: overlap is a number from 0 to 1, got %g", overlap) end
  local link = { latency = given.latency, bandwidth = given.bandwidth }
  local host = { latency = given.host_latency, bandwidth = given.host_bandwidth }
  local result = object.new(Cost, { gradient_bytes = bytes, step_seconds = given.step_seconds, workers_per_host = given.workers_per_host,
                                    latency = link.latency, bandwidth = link.bandwidth, overlap = overlap })
  local function row(p, sum, by_halving)
    local pack = given.bytes_per_pack > 0 and given.bytes_per_pack or best_pack(given.step_seconds, bytes, overlap, sum)
    local seconds = step_seconds(given.step_seconds, bytes, pack, overlap, sum) + announce(p, link, by_halving)
    return { seconds = seconds, efficiency = given.step_seconds / seconds, bytes_per_pack = pack }
  end
  for i, p in ipairs(check_workers(given.workers or { 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096 })) do
    rawset(result, i, {
      workers = p,
      ring = row(p, function(n) return ring(p, n, link) end),
      halving = row(p, function(n) return halving(p, n, link) end, true),
      hierarchical = row(p, function(n) return hierarchical(p, n, link, host, given.workers_per_host) end, true),
    })
  end
  return result
end

local function size_text(bytes)
  if bytes < 1e6 then return ("%.0f kB"):format(bytes / 1e3) end
  return ("%.1f MB"):format(bytes / 1e6)
end

Cost.metatable.__tostring = function(self)
  local lines = {
    ("%s of gradients a step, %.3g ms of computing"):format(size_text(self.gradient_bytes), 1e3 * self.step_seconds),
    ("%8s %20s %9s %20s %20s"):format("workers", "ring", "in packs", "halving", ("hosts of %d"):format(self.workers_per_host)),
  }
  for _, entry in ipairs(self) do
    local function cell(how) return ("%8.4g ms %5.1f %%"):format(1e3 * entry[how].seconds, 100 * entry[how].efficiency) end
    lines[#lines + 1] = ("%8d %20s %9s %20s %20s"):format(entry.workers, cell "ring", size_text(entry.ring.bytes_per_pack), cell "halving",
      cell "hierarchical")
  end
  return table.concat(lines, "\n")
end

return cost
