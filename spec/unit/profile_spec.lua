-- flow.profile: where the time of a function goes, kernel by kernel.
local support = require "spec.support.init"
local flow = require "flow"

local function small_model()
  local layers = flow.layers
  local model = flow.Sequential {
    layers.Input { 12, 12, 3 }, layers.Conv2D(8, 3, { activation = "relu" }), layers.MaxPooling2D(), layers.Flatten(), layers.Dense(4),
  }
  model:compile { optimizer = "sgd", loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
  return model, flow.random.uniform({ 32, 12, 12, 3 }, { seed = 1 }), flow.zeros({ 32 }, { dtype = "int32" })
end

describe("flow.profile", function()
  it("names the variant of every kernel of a training step, and its parts add up", function()
    local model, x, y = small_model()
    model:fit(x, y, { batch_size = 8, verbose = 0 })
    local profile = flow.profile(function() model:fit(x, y, { batch_size = 8, epochs = 3, verbose = 0 }) end)
    local sum, ops = profile.waiting + profile.outside, {}
    for _, row in ipairs(profile.rows) do
      sum = sum + row.seconds
      ops[row.op] = row
    end
    assert.is_near(profile.seconds, sum, 1e-9)
    assert.is_true(profile.outside > 0)
    assert.are.equal(12, ops.convolution.calls)
    assert.are.equal("{8, 12, 12, 3} {3, 3, 3, 8}", ops.convolution.shape)
    assert.is_truthy(ops.convolution_gradient and ops.dense and ops.sgd)
    for _, row in ipairs(profile.rows) do assert.is_true(#row.variant > 0 and row.seconds >= 0, row.op) end
    assert.is_near(ops.convolution.seconds, profile:total("convolution"), 1e-12)
    local text = tostring(profile)
    assert.is_truthy(text:find("convolution_gradient", 1, true) and text:find("(waiting)", 1, true) and text:find("total", 1, true))
  end)

  it("counts the bytes of each op's output and of the step", function()
    local model, x, y = small_model()
    local profile = flow.profile(function() model:fit(x, y, { batch_size = 8, verbose = 0 }) end)
    for _, row in ipairs(profile.rows) do
      if row.op == "convolution" then assert.is_true(row.bytes >= 8 * 5 * 5 * 8 * 4, row.bytes) end
      if row.op == "dense" then assert.are.equal(8 * 4 * 4, row.bytes) end
      if row.op == "sgd" then assert.are.equal(0, row.bytes) end
    end
    assert.is_true(profile.arena > 0 and profile.memory >= profile.arena)
    assert.is_truthy(tostring(profile):find("memory of the largest plan: ", 1, true))
    assert.are.equal(100 * 1000 * 4, flow.profile(function() return flow.ones { 100, 1000 } + 1 end).rows[1].bytes)
  end)

  it("writes a time line whose events do not overlap on a thread", function()
    local model, x, y = small_model()
    local path = support.path()
    local profile = flow.profile(function(a, b) model:fit(a, b, { batch_size = 8, epochs = 2, verbose = 0 }) end, { trace = path }, x, y)
    local file = assert(io.open(path, "rb"))
    local trace = require("flow.json").decode(file:read("*a"))
    file:close()
    os.remove(path)
    local ends, busy, kernels = {}, 0, 0
    for _, event in ipairs(trace.traceEvents) do
      if event.ph == "X" then
        kernels = kernels + 1
        busy = busy + event.dur
        assert.is_true(event.ts >= (ends[event.tid] or 0) - 0.002 and event.dur >= 0)
        ends[event.tid] = event.ts + event.dur
        assert.is_true(#event.name > 0 and #event.args.variant > 0 and ends[event.tid] <= 1e6 * profile.seconds)
      end
    end
    assert.is_true(kernels >= 8 * 4)
    assert.is_true(busy > 0)
    assert.has_error(function() flow.profile(function() end, { trace = 3 }) end,
                     "flow.profile: trace: a path is a string, got the number 3")
    assert.are.same({ x = 1 }, (function()
      local got
      flow.profile(function(t) got = t end, { x = 1 })
      return got
    end)())
  end)

  it("sees eager ops", function()
    local a = flow.ones { 5, 7 }
    local profile = flow.profile(function(b) return a + b end, a)
    assert.are.equal(1, #profile.rows)
    assert.are.equal("add", profile.rows[1].op)
    assert.are.equal("{5, 7} {5, 7}", profile.rows[1].shape)
  end)

  it("is over after an error, which passes through as it is, and does not nest", function()
    local thrown = {}
    local ok, message = pcall(flow.profile, function() error(thrown) end)
    assert.is_false(ok)
    assert.are.equal(thrown, message)
    assert.has_error(function() flow.profile(function() flow.profile(function() end) end) end,
                     "flow.profile: this is being profiled already; profiles do not nest")
    assert.has_error(function() flow.profile(3) end, "flow.profile takes a function, got the number 3")
    assert.are.equal(0, #flow.profile(function() end).rows)
  end)
end)
