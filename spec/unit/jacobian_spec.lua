-- jacobian_spec.lua: tape:jacobian and tape:batch_jacobian, whose values TensorFlow gave for
--
--   x = tf.constant([[0.5, -1, 2], [1, 0.25, -0.5]]); w = tf.Variable([[1, 2], [-1, 0.5], [0.25, -2]]); y = tf.tanh(x @ w) * x[:, :2]
--   tape.jacobian(y, w), tape.jacobian(y, x), tape.batch_jacobian(y, x)
local flow = require "flow"
local message_of = require("spec.support.init").message_of

local OF_W = { { { { 0.0176627, 0 }, { -0.03532541, 0 }, { 0.07065082, 0 } }, { { 0, -0.001820385 }, { 0, 0.003640771 }, { 0,
  -0.007281542 } } }, { { { 0.6924192, 0 }, { 0.1731048, 0 }, { -0.3462096, 0 } }, { { 0, 0.00192301 }, { 0, 0.0004807524 }, { 0,
  -0.0009615049 } } } }
local OF_X = { { { { 0.999353, -0.03532541, 0.008831352 }, { 0, 0, 0 } }, { { -0.007281542, -0.9999983, 0.007281542 }, { 0, 0, 0 } } },
  { { { 0, 0, 0 }, { 1.247019, -0.6924192, 0.1731048 } }, { { 0, 0, 0 }, { 0.00384602, 0.997108, -0.00384602 } } } }
local BY_ROW = { { { 0.999353, -0.03532541, 0.008831352 }, { -0.007281542, -0.9999983, 0.007281542 } }, { { 1.247019, -0.6924192,
  0.1731048 }, { 0.00384602, 0.997108, -0.00384602 } } }

local x, w = flow.tensor { { 0.5, -1, 2 }, { 1, 0.25, -0.5 } }, flow.Variable { { 1, 2 }, { -1, 0.5 }, { 0.25, -2 } }

local function recorded(t)
  local tape = flow.GradientTape { persistent = true }
  tape:watch(t)
  return tape, tape:record(function() return t:matmul(w):tanh() * t[{ {}, { 1, 2 } }] end)
end

local function assert_close(expected, found)
  expected = flow.tensor(expected)
  assert.same(expected.shape, found.shape)
  assert.truthy((expected - found):abs():max():item() < 1e-6)
end

describe("the Jacobian of a tape", function()
  it("has the target's axes, then the source's, eagerly and in a traced function", function()
    local function both(t)
      local tape, y = recorded(t)
      local of = tape:jacobian(y, { w = w, x = t })
      return of.w, of.x
    end
    for _, f in ipairs { both, flow.fn(both) } do
      local of_w, of_x = f(x)
      assert_close(OF_W, of_w)
      assert_close(OF_X, of_x)
    end
  end)

  it("is made row by row where the rows do not depend on each other", function()
    local tape, y = recorded(x)
    assert_close(BY_ROW, tape:batch_jacobian(y, x))
  end)

  it("is nil, or zeros, for what the target does not depend on", function()
    local tape, y = recorded(x)
    local other = flow.Variable { 1, 2, 3 }
    assert.is_nil(tape:jacobian(y, other))
    local zeros = tape:jacobian(y, other, { unconnected_gradients = "zero" })
    assert.same({ 2, 2, 3 }, zeros.shape)
    assert.equal(0, zeros:abs():max():item())
  end)

  it("needs a recording; where rows of a batch are its target, a graph stands for those of each batch", function()
    assert.truthy(message_of(function() flow.GradientTape():jacobian(x, w) end):find("recorded nothing", 1, true))
    local Own = flow.layers.Layer:extend "Own"
    function Own:call(t)
      local tape = flow.GradientTape()
      tape:watch(t)
      tape:jacobian(tape:record(function() return t * 2 end), t)
      return t
    end
    local input = flow.Input { 2 }
    local model = flow.Model { inputs = input, outputs = Own()(input) }
    assert.equal("(None, 2)", tostring(model.output.shape))
    assert.same({ { 1, 2 }, { 3, 4 } }, model:predict(flow.tensor { { 1, 2 }, { 3, 4 } }, { verbose = 0 }):totable())
  end)
end)
