-- cost_spec.lua: the cost model of many workers, against numbers worked out by hand and against a simulation of the messages.
local support = require "spec.support.init"
local flow = require "flow"
local cost = flow.distribute.cost
local internal = require "flow.distribute.cost"

local function near(wanted, found) assert.is_true(math.abs(found / wanted - 1) < 1e-9, ("%.17g, expected %.17g"):format(found, wanted)) end

local function row(options)
  options.step_seconds, options.latency = options.step_seconds or 1, options.latency or 1e-3
  options.bandwidth, options.overlap = options.bandwidth or 1e6, options.overlap or 0
  options.bytes_per_pack = options.bytes_per_pack or 2 ^ 26
  options.gradient_bytes = options.gradient_bytes or 1e6
  return cost(options)[1]
end

-- Messages of a ring, one by one: worker w sends a part of the bytes to the next one, and cannot before it has what it adds to.
local function simulated_ring(p, bytes, latency, bandwidth)
  local free = {}
  for w = 0, p - 1 do free[w] = 0 end
  for _ = 1, 2 * (p - 1) do
    local came = {}
    for w = 0, p - 1 do came[(w + 1) % p] = free[w] + latency + bytes / p / bandwidth end
    for w = 0, p - 1 do free[w] = math.max(free[w], came[w]) end
  end
  return free[0]
end

describe("flow.distribute.cost", function()
  it("has the sums of a ring, of halving and of hosts", function()
    for _, p in ipairs { 2, 3, 8, 60 } do
      near(1 + simulated_ring(p, 1e6, 1e-3, 1e6) + (p - 1) * (1e-3 + 64e-6), row({ workers = { p } }).ring.seconds)
    end
    -- 8 workers: 3 rounds of halving, 3 of doubling; each worker sends 7/8 of the bytes in either; the announcement takes 3 rounds.
    near(1 + 6e-3 + 2 * 0.875 + 3e-3 + 7 * 64e-6, row({ workers = { 8 } }).halving.seconds)
    -- 10 are 8 and two that hand over all their bytes before, and get all after it.
    near(1 + 6e-3 + 2 * 0.875 + 2 * (1e-3 + 1) + 4e-3 + 9 * 64e-6, row({ workers = { 10 } }).halving.seconds)
    -- 16 workers on 4 hosts: a ring of 4 in a host, one of 4 hosts.
    local hosts = row({ workers = { 16 }, workers_per_host = 4, host_latency = 1e-5, host_bandwidth = 1e8 })
    near(1 + 6e-5 + 1.5 * 1e-2 + 6e-3 + 1.5 + 4e-3 + 15 * 64e-6, hosts.hierarchical.seconds)
    near(1 / hosts.hierarchical.seconds, hosts.hierarchical.efficiency)
  end)

  it("hides what runs beside the backward pass", function()
    -- One pack is there when all is computed; of two, the first is there at 2/3 of the step: its sum, of half of the bytes, has a third
    -- of a second.
    local alone = row({ workers = { 2 } })
    near(alone.ring.seconds, row({ workers = { 2 }, overlap = 1 }).ring.seconds)
    local packs = row({ workers = { 2 }, overlap = 1, bytes_per_pack = 5e5, latency = 1e-9 })
    near(1 + (0.5 + 2e-9 - 1 / 3) + 0.5 + 2e-9 + 1e-9 + 64e-6, packs.ring.seconds)
    local slow = row({ workers = { 2 }, overlap = 0.5, bytes_per_pack = 5e5, latency = 1e-9 })
    near(1 + (0.5 + 2e-9 - 1 / 6) + 0.5 + 2e-9 + 1e-9 + 64e-6, slow.ring.seconds)
    local fast = row({ workers = { 2 }, overlap = 1, bandwidth = 1e12, latency = 1e-12, bytes_per_pack = 5e5 })
    assert.is_true(fast.ring.efficiency > 0.999999)
  end)

  it("takes the packs that are best", function()
    for _, p in ipairs { 8, 512, 4096 } do
      local options = { gradient_bytes = 1e8, step_seconds = 0.2, latency = 2e-5, bandwidth = 2e9, overlap = 1, workers = { p } }
      local best = cost(options)[1].ring
      for power = 16, 26 do
        options.bytes_per_pack = 2 ^ power
        assert.is_true(best.seconds <= cost(options)[1].ring.seconds * (1 + 1e-9))
      end
      options.bytes_per_pack = best.bytes_per_pack
      near(best.seconds, cost(options)[1].ring.seconds)
    end
  end)

  it("fits latency, bandwidth and overlap to what was measured", function()
    local samples = {}
    for _, bytes in ipairs { 4e3, 6e4, 1e6, 16e6 } do samples[#samples + 1] = { bytes, 2 * 3 * 5e-5 + 2 * 3 / 4 * bytes / 8e8 } end
    local link = internal.fit_link(samples, 4)
    near(5e-5, link.latency)
    near(8e8, link.bandwidth)
    local function pair_of(overlap)
      return cost { gradient_bytes = 1e7, step_seconds = 0.03, latency = 5e-5, bandwidth = 8e8, overlap = overlap, workers = { 2 },
                    bytes_per_pack = 2 ^ 22 }[1].ring.seconds
    end
    for _, sample in ipairs(samples) do sample[2] = 2 * 5e-5 + sample[1] / 8e8 end
    local function fitted(pair_seconds)
      return cost { gradient_bytes = 1e7, step_seconds = 0.03, sums = samples, pair_seconds = pair_seconds, workers = { 2 } }
    end
    near(5e-5, fitted(nil).latency)
    near(8e8, fitted(nil).bandwidth)
    assert.equal(1, fitted(nil).overlap)
    assert.is_true(math.abs(fitted(pair_of(0.3)).overlap - 0.3) < 1e-6)
    assert.is_true(fitted(1).overlap < 1e-6)
    local message = support.message_of(function() internal.fit_link({ { 1, 2 }, { 2, 1 } }, 2) end)
    assert.truthy(message:find("do not grow with their size", 1, true), message)
  end)

  it("counts a model's gradients, and prints a table", function()
    local model = flow.Sequential { flow.layers.Input { 100 }, flow.layers.Dense(50), flow.layers.BatchNormalization() }
    local result = cost { model = model, step_seconds = 0.01, latency = 1e-5, bandwidth = 1e9, workers = { 8, 4096 } }
    assert.equal(4 * (100 * 50 + 50 + 2 * 50), result.gradient_bytes)
    assert.equal(4096, result[2].workers)
    assert.is_true(result[2].ring.efficiency < result[2].halving.efficiency)      -- latencies count
    assert.truthy(tostring(result):find("\n    4096 +[%d.]+ ms +[%d.]+ %% +[%d.]+ .B +[%d.]+ ms +[%d.]+ %%"), tostring(result))
  end)

  it("says what is missing or wrong", function()
    local function says(options, text)
      local message = support.message_of(function() cost(options) end)
      assert.truthy(message:find(text, 1, true), message)
    end
    says({ gradient_bytes = 1 }, "step_seconds is a number above 0")
    says({}, "model is a model that is built, got nil")
    says({ gradient_bytes = 1, step_seconds = 1, latency = 0 / 0, bandwidth = 1 }, "latency is a number above 0")
    local whole = { gradient_bytes = 1, step_seconds = 1, latency = 1, bandwidth = 1 }
    whole.workers = { 8, 1 }
    says(whole, "entry 2 of workers is a whole number from 2, got the number 1")
    whole.workers = {}
    says(whole, "workers is a list such as { 8, 64 }")
    whole.workers, whole.overlap = nil, 2
    says(whole, "overlap is a number from 0 to 1, got 2")
  end)
end)
