-- constant_initializer_spec.lua: Constant takes a number, a list or a tensor, which is broadcast to the weight's shape as in Keras.
local flow = require "flow"
local support = require "spec.support.init"
local model_files = require "spec.support.model_files"
local layers, message_of = flow.layers, support.message_of
local Constant = flow.initializers.Constant

describe("Constant", function()
  it("of values has them where broadcasting puts them: every shape of values for every shape of rank 3", function()
    for mask = 0, 7 do
      local dims, size = {}, 1
      for i, n in ipairs { 2, 3, 4 } do
        dims[i] = math.floor(mask / 2 ^ (i - 1)) % 2 == 1 and 1 or n
        size = size * dims[i]
      end
      for skip = 0, 2 do
        local skipped = true
        for i = 1, skip do skipped = skipped and dims[i] == 1 end
        if skipped then
          local values = flow.reshape(flow.arange(size) + 0.5, { unpack(dims, skip + 1) })
          local expected = flow.broadcast_to(values, { 2, 3, 4 }):totable()
          assert.same(expected, Constant(values)({ 2, 3, 4 }):totable())
          assert.same(expected, Constant { value = values:totable() }({ 2, 3, 4 }):totable())
        end
      end
    end
    assert.same({ 2, 2 }, Constant(flow.tensor(2))({ 2 }):totable())
  end)

  it("makes weights that a file brings back, in Lua and in C", function()
    local input = flow.Input { 4 }
    local output = layers.Dense(9, { kernel_initializer = "zeros", bias_initializer = Constant(flow.reshape(flow.eye(3), { -1 })) })(input)
    local model = flow.Model { inputs = input, outputs = layers.Reshape { 3, 3 }(output) }
    assert.same(flow.eye(3):totable(), model:predict(flow.ones { 1, 4 }, { verbose = 0 })[1]:totable())
    model_files.assert_returns(model, { flow.ones { 2, 4 } })
    local again = flow.models.model_from_json(model:to_json())
    assert.same(model.weights[2]:value():totable(), again.weights[2]:value():totable())
    assert.same({ 1, 0, 0, 0, 1, 0, 0, 0, 1 }, model.layers[2]:get_config().bias_initializer.config.value)
  end)

  it("whose values do not fit says so", function()
    local message = message_of(function() layers.Dense(3, { bias_initializer = Constant { 1, 2 } })(flow.ones { 1, 2 }) end)
    assert.truthy(message:find("value has the shape {2}, which cannot be broadcast to {3}", 1, true), message)
    message = message_of(function() Constant({ { 1 } }) { 1 } end)
    assert.truthy(message:find("value has the shape {1, 1}, which cannot be broadcast to {1}", 1, true), message)
  end)
end)
