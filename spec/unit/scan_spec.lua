-- scan_spec.lua: flow.scan and keras.ops.scan: results and states by hand, gradients against differences, traced, in layers and models.
require "spec.support.init"
local flow = require "flow"

local layers = flow.layers

local function numbers(t) return t:totable() end
local function decay(state, x) return state * 0.5 + x end

describe("flow.scan", function()
  it("carries a state along and stacks what each round gives", function()
    local xs = flow.tensor { { 8, 0 }, { 4, 2 }, { 2, 4 } }
    local out, state = flow.scan(decay, flow.zeros { 2 }, xs)
    assert.same({ { 8, 0 }, { 8, 2 }, { 6, 5 } }, numbers(out))
    assert.same({ 6, 5 }, numbers(state))
    out, state = flow.scan(decay, flow.zeros { 2 }, xs, { reverse = true })
    assert.same({ { 10.5, 2 }, { 5, 4 }, { 2, 4 } }, numbers(out))
    assert.same({ 10.5, 2 }, numbers(state))
  end)

  it("takes functions with two results, lists of states and of rows, and none of either", function()
    local function f(c, x) return { sum = c.sum + x.a, product = c.product * x.b }, c.sum end
    local out, state = flow.scan(f, { sum = 0, product = 1 }, { a = { 1, 2, 3 }, b = { 2, 3, 4 } }, {})
    assert.same({ 0, 1, 3 }, numbers(out))
    assert.same({ 6, 24 }, { state.sum:item(), state.product:item() })
    local ys, last = flow.scan(function(c) return c * 2, { c, c + 1 } end, 1, nil, { length = 3, unroll = 2 })
    assert.same({ { 1, 2, 4 }, { 2, 3, 5 }, 8 }, { numbers(ys[1]), numbers(ys[2]), last:item() })
    ys, last = flow.scan(function(c, x) return c + x, nil end, 0, { 1, 2 })
    assert.same({ 3 }, { last:item() })
    assert.is_nil(ys)
    ys, last = flow.scan(decay, flow.ones { 2 }, flow.zeros { 0, 2 })
    assert.same({ 0, 2 }, { unpack(ys.shape) })
    assert.same({ 1, 1 }, numbers(last))
  end)

  it("is differentiated, eagerly and in a plan", function()
    local xs, weight = flow.random.normal({ 4, 3 }, { seed = 1 }), flow.Variable(flow.tensor { 0.5, -0.3, 0.8 })
    local function loss_of(x, w)
      local out, state = flow.scan(function(c, row) return (c * w + row):tanh(), c * row end, flow.ones { 3 }, x)
      return (out * out):sum() + state:sum()
    end
    local function gradients(x)
      local tape = flow.GradientTape()
      tape:watch(x)
      local loss = tape:record(function() return loss_of(x, weight) end)
      return unpack(tape:gradient(loss, { x, weight }))
    end
    local of_xs, of_weight = gradients(xs)
    local traced_xs, traced_weight = flow.fn(gradients)(xs)
    assert.is_true((of_xs - traced_xs):abs():max():item() < 1e-6)
    assert.is_true((of_weight - traced_weight):abs():max():item() < 1e-6)
    local wide, w = xs:to "float64", weight:value():to "float64"
    local function value(x, v)
      local out, state = flow.scan(function(c, row) return (c * v + row):tanh(), c * row end, flow.ones({ 3 }, { dtype = "float64" }), x)
      return ((out * out):sum() + state:sum()):item()
    end
    local h = 1e-5
    for i = 1, 3 do
      local up, down = w:copy(), w:copy()
      up[i], down[i] = up[i]:item() + h, down[i]:item() - h
      assert.is_near((value(wide, up) - value(wide, down)) / (2 * h), of_weight[i]:item(), 1e-4)
      local more, less = wide:copy(), wide:copy()
      more[{ 2, i }], less[{ 2, i }] = more[{ 2, i }]:item() + h, less[{ 2, i }]:item() - h
      assert.is_near((value(more, w) - value(less, w)) / (2 * h), of_xs[{ 2, i }]:item(), 1e-4)
    end
  end)

  it("runs in layers that train, and on symbolic tensors, whose batch may stand on the second axis", function()
    local Decay = layers.Layer:extend("Decay")
    function Decay:build(shape) self.rate = self:add_weight { name = "rate", shape = { shape[3] }, initializer = "zeros" } end
    function Decay:call(x)
      local steps = x:transpose { 2, 1, 3 }
      return (select(2, flow.scan(function(c, step) return c * self.rate + step end, flow.zeros_like(steps[1]), steps)))
    end
    local model = flow.Sequential { layers.Input { 5, 2 }, Decay() }
    model:compile { optimizer = flow.optimizers.SGD(0.01), loss = "mse" }
    local x = flow.ones { 4, 5, 2 }
    local loss = model:fit(x, flow.full({ 4, 2 }, 2), { epochs = 60, verbose = 0 }).history.loss
    assert.is_true(loss[60] < 0.01 * loss[1], loss[60])
    local input = flow.Input { 3, 2 }
    local steps = input:transpose { 2, 1, 3 }
    local out, state = flow.scan(function(c, step) return { c[1] * 0.5 + step }, c[1] * 2 end,
      { flow.zeros_like(input[{ {}, { 1, 1 } }]):squeeze(2) }, steps)
    assert.same({ { 3, -1, 2 }, { -1, 2 } }, { out.shape, state[1].shape })
    local model_of = flow.Model { inputs = input, outputs = { out:transpose { 2, 1, 3 }, state[1] } }
    local found = model_of:predict(flow.ones { 2, 3, 2 }, { verbose = 0 })
    assert.same({ { { 0, 0 }, { 2, 2 }, { 3, 3 } }, { { 0, 0 }, { 2, 2 }, { 3, 3 } } }, numbers(found[1]))
    assert.same({ { 1.75, 1.75 }, { 1.75, 1.75 } }, numbers(found[2]))
  end)

  it("says what does not fit", function()
    local function problem(...) return select(2, pcall(flow.scan, ...)) end
    local f = decay
    assert.matches("f made a state of float32 {3} of one of float32 {}: it must stay alike", problem(f, 0, flow.ones { 2, 3 }))
    assert.matches("f made a state of float32 {} of one of int32 {}", problem(f, flow.tensor(0, { dtype = "int32" }), flow.ones { 2 }))
    assert.matches("xs has 3 rows, another tensor of it 2", problem(f, 0, { flow.ones { 2 }, flow.ones { 3 } }))
    assert.matches("xs has 2 rows, length is 3", problem(f, 0, flow.ones { 2 }, { length = 3 }))
    assert.matches("without xs it needs length", problem(f, 0))
    assert.matches("f returned nothing", problem(function() end, 0, flow.ones { 2 }))
    assert.matches("the structures of two results differ", problem(function(c) return { c[1] } end, { 0, 0 }, flow.ones { 2 }))
    assert.matches("needs a state to begin with", problem(f, nil, flow.ones { 2 }))
  end)
end)

describe("keras.ops.scan", function()
  it("returns the last state first, as Keras does", function()
    local last, results = flow.keras.ops.scan(function(c, x) return c + x, c * x end, 0, { 1, 2, 3, 4 })
    assert.equal(10, last:item())
    assert.same({ 0, 2, 9, 24 }, numbers(results))
  end)
end)
