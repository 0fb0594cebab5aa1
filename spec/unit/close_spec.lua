-- close_spec.lua: model:close() gives everything back at once, without the collector, and what is used afterwards says that it was closed.
local flow = require "flow"
local native = require "flow.ffi"
local support = require "spec.support.init"
local layers = flow.layers

local makers = {
  ["a Sequential"] = function()
    return flow.Sequential { layers.Input { 64 }, layers.Dense(256), layers.BatchNormalization(), layers.Dense(1) }
  end,
  ["a functional model"] = function()
    local input = flow.Input { 64 }
    local hidden = layers.Dense(256)(input)
    return flow.Model { inputs = input, outputs = layers.Dense(1)(layers.Add()({ hidden, layers.Dense(256)(hidden) })) }
  end,
  ["a model in a model"] = function()
    local inner = flow.Sequential { layers.Input { 64 }, layers.Dense(256), layers.Dropout(0.1) }
    return flow.Sequential { layers.Input { 64 }, inner, layers.Dense(1) }
  end,
  ["a model whose layers are Lua"] = function()
    local Scale = layers.Layer:extend("Scale")
    function Scale:build(shape) self.gain = self:add_weight { name = "gain", shape = { 64, shape[2] }, initializer = "ones" } end
    function Scale:call(x) return x * self.gain:sum(1) end
    return flow.Sequential { layers.Input { 64 }, Scale(), layers.Dense(1) }
  end,
}

describe("model:close()", function()
  local x, y = flow.ones { 8, 64 }, flow.ones { 8, 1 }

  for name, make in pairs(makers) do
    for _, policy in ipairs { "float32", "mixed_float16" } do
      it(("frees %s of %s at once"):format(name, policy), function()
        local function round()
          flow.mixed_precision.set_global_policy(policy)
          local model = make()
          flow.mixed_precision.set_global_policy("float32")
          model:compile { optimizer = "adam", loss = "mse" }
          model:fit(x, y, { epochs = 2, batch_size = 4, verbose = 0 })
          model:predict(x, { verbose = 0 })
          model:close()
          model:close()
          return model
        end
        round()
        collectgarbage() collectgarbage()
        local before = native.C.flow_live_bytes()
        collectgarbage("stop")
        for _ = 1, 5 do round() end
        local after = native.C.flow_live_bytes()
        collectgarbage("restart")
        assert.truthy(after - before < 5 * 65536, ("%d bytes stay"):format(after - before))   -- weights alone: 5 * 3 * 65,536
      end)
    end
  end

  it("frees what a script that keeps tensors of its trace would hold", function()
    local Keep, kept = layers.Layer:extend("Keep"), {}
    function Keep:call(value) kept[#kept + 1] = value * 2 return value end
    local function round()
      local model = flow.Sequential { layers.Input { 64 }, layers.Dense(256), Keep(), layers.Dense(256), layers.Dense(1) }
      model:compile { optimizer = "adam", loss = "mse" }
      model:fit(x, y, { epochs = 2, batch_size = 4, verbose = 0 })
      model:close()
    end
    round()
    collectgarbage() collectgarbage()
    local before = native.C.flow_live_bytes()
    for _ = 1, 5 do round() end
    collectgarbage() collectgarbage()
    local bytes = native.C.flow_live_bytes() - before
    assert.truthy(#kept >= 6, "no tensor was kept")
    assert.truthy(bytes < 5 * 65536, ("%d bytes stay"):format(bytes))
    local message = support.message_of(function() return kept[1] + 1 end)
    assert.truthy(message:find("after the trace that it belongs to", 1, true), message)
  end)

  it("makes every later use an error that says so", function()
    local model = makers["a Sequential"]()
    model:compile { optimizer = "adam", loss = "mse" }
    model:fit(x, y, { verbose = 0 })
    local layer, kernel, optimizer = model.layers[1], model.layers[1].kernel, model.optimizer
    model:close()
    for _, use in ipairs {
      function() model:predict(x, { verbose = 0 }) end, function() model:fit(x, y) end, function() return (model(x)) end,
      function() return (model.weights) end, function() return (layer(x)) end, function() return layer.kernel end,
      function() return (kernel:value()) end, function() return kernel + 1 end, function() return kernel.shape end,
      function() return (tostring(kernel)) end, function() optimizer:apply_gradients({}, {}) end,
      function() return optimizer.iterations end,
      function() model.stop_training = true end, function() kernel:assign(1) end,
      function() return (layer(flow.Input { 64 })) end,
    } do
      local message = support.message_of(use)
      assert.truthy(message:find("closed", 1, true), message)
    end
    assert.equal('Sequential', tostring(model):match("^%a+"))
  end)

  it("is refused while the model runs", function()
    local model = makers["a Sequential"]()
    model:compile { optimizer = "adam", loss = "mse" }
    local ok, message
    model:fit(x, y, { verbose = 0, batch_size = 4, callbacks = { flow.callbacks.LambdaCallback {
      on_train_batch_end = function() ok, message = pcall(model.close, model) end } } })
    assert.is_false(ok)
    assert.truthy(message:find("close: the model is running", 1, true), message)
    model:close()
  end)
end)
