-- errors_spec.lua: how errors read and which line they name.
local support = require "spec.support.init"
local errors = require "flow.errors"
local flow = require "flow"
local message_of = support.message_of

describe("errors.raise", function()
  it("names the first line outside lua/flow", function()
    local line = debug.getinfo(1, "l").currentline + 1
    local _, message = pcall(function() flow.tensor { print } end)
    assert.truthy(message:find("errors_spec.lua:" .. line .. ": flow.tensor: ", 1, true), message)
  end)

  it("names the caller's line through callbacks of ours", function()
    local tape = flow.GradientTape()
    local line = debug.getinfo(1, "l").currentline + 1
    local _, message = pcall(tape.record, tape, function() return flow.ones { 2 } + flow.ones { 3 } end)
    assert.truthy(message:find("errors_spec.lua:" .. line .. ": ", 1, true), message)
  end)

  it("does without a position where there is none", function()
    local raised = coroutine.create(errors.raise)
    local ok, message = coroutine.resume(raised, "%d of %s", 1, "two")
    assert.is_false(ok)
    assert.equal("1 of two", message)
  end)

  it("has no control bytes, which a terminal would obey", function()
    assert.equal("no a?]0;title??\t\n", (message_of(function() errors.raise("no %s", "a\27]0;title\7\r\t\n") end)))
    local text = flow.Sequential({ flow.layers.Input { 2 }, flow.layers.Dense(1) }):to_json():gsub('"Dense"', '"\\u001b[31m"')
    for _, load in ipairs { flow.load_npy, flow.load_model, flow.io.read_file, function() flow.models.model_from_json(text) end } do
      local _, message = pcall(load, "\27[31m.keras")
      assert.truthy(message:find("?[31m", 1, true), message)
    end
  end)

  it("leaves a percent sign alone without further arguments", function()
    assert.equal("100%", message_of(function() errors.raise("100%") end))
  end)
end)

describe("errors.describe", function()
  it("shows values as a sentence can hold them", function()
    assert.equal("the number 3", errors.describe(3))
    assert.equal('the string "a"', errors.describe("a"))
    assert.equal("nil", errors.describe(nil))
    assert.equal("true", errors.describe(true))
    assert.equal("a table", errors.describe({}))
    assert.equal("a table with a metatable", errors.describe(setmetatable({}, {})))
    assert.equal('the variable "w" float32 {2} cpu', errors.describe(flow.Variable({ 1, 2 }, { name = "w" })))
    assert.matches("a Dense is not a value", support.message_of(function() flow.tensor { flow.layers.Dense(1) } end))
    assert.equal("the C integer -2LL (tonumber makes a number of it)", errors.describe(-2LL))
    assert.equal("the C integer 2ULL (tonumber makes a number of it)", errors.describe(2ULL))
    assert.equal("a function", errors.describe(print))
    assert.equal("a tensor float32 {2} cpu", errors.describe(flow.ones { 2 }))
  end)
end)

describe("errors.suggestion", function()
  local names = { "units", "activation", "use_bias" }

  it("finds the nearest name, if one is near", function()
    assert.equal('; did you mean "units"?', errors.suggestion("unit", names))
    assert.equal('; did you mean "activation"?', errors.suggestion("Activaton", names))
    assert.equal('; did you mean "use_bias"?', errors.suggestion("usebias", { use_bias = 1, units = 2 }))
    assert.equal('; did you mean "units"?', errors.suggestion("untis", names))      -- swapped neighbours are one mistake
    assert.equal('; did you mean "aa"?', errors.suggestion("ab", { ac = 1, aa = 1 }))     -- of equally near ones the first in order
    assert.equal("", errors.suggestion("padding", names))
    assert.equal("", errors.suggestion("x", names))
  end)
end)

describe("flow", function()
  it("has no other fields than its own", function()
    assert.equal('flow has no field "tensr"; did you mean "tensor"?', message_of(function() return flow.tensr end))
    assert.equal('flow has no field "estimator": model:fit trains; with callbacks.ModelDirectory(model_dir) it goes on from what is in a '
      .. "folder, and saves there",
      message_of(function() return flow.estimator end))
    assert.equal('flow.distribute has no "CentralStorageStrategy": MirroredStrategy() keeps the variables of all replicas equal',
      message_of(function() return flow.distribute.CentralStorageStrategy() end))
    assert.equal('flow has no field "nonsense_of_any_kind"', message_of(function() return flow.nonsense_of_any_kind end))
  end)

  it("is told where to find what other libraries call by a name that is not here", function()
    local model = flow.Sequential { flow.layers.Dense(1) }
    model:compile { loss = "mse" }
    local objects = { flow = flow, model = model, tensor = flow.ones { 1 }, variable = flow.Variable(1), layer = flow.layers.Dense(1),
                      optimizer = flow.optimizers.SGD(), dataset = flow.data.Dataset.range(3), tape = flow.GradientTape(),
                      ["traced function"] = flow.fn(print), options = flow.data.Options(),
                      tokenizer = flow.text.Tokenizer({ a = 0 }, {}), callback = flow.callbacks.Callback() }
    local calls = {      -- those that take options of these names
      ["flow.fn"] = function(options) flow.fn(print, options) end,
      ["flow.Variable"] = function(options) flow.Variable(1, options) end,
      ["model:save"] = function(options) model:save("never.keras", options) end,
      ["model:save_weights"] = function(options) model:save_weights("never.weights.h5", options) end,
    }
    for module, names in pairs(require "flow.errors.elsewhere") do
      for name, place in pairs(module ~= "option" and names or {}) do      -- options of any call: mistakes.txt
        local method = module:match("^model:(.*)$")
        local text = message_of(function()
          if calls[module] then return calls[module] { [name] = 1 } end
          if method then
            local called = model[method](model, flow.ones { 2, 2 }, flow.ones { 2, 1 }, { [name] = 1 })
            return called
          end
          local found = objects[module] or flow
          for part in (objects[module] and "" or module:match("%.(.*)$")):gmatch "[^.]+" do found = found[part] end
          return found[name]
        end)
        assert.truthy(text and text:find(": " .. place, 1, true), module .. "." .. name .. ": " .. tostring(text))
      end
    end
  end)

  it("knows Torch7's names", function()
    assert.matches('has no "SpatialConvolution": layers.Conv2D', message_of(function() return flow.nn.SpatialConvolution(3, 16, 5, 5) end))
    assert.matches('has no "MSECriterion": flow.losses.MeanSquaredError', message_of(function() return flow.nn.MSECriterion() end))
    assert.matches('no field "cmul": x %* y is a new tensor', message_of(function() return flow.ones({ 2 }):cmul(1) end))
    local model = flow.Sequential { flow.layers.Dense(1) }
    assert.matches('no field "zeroGradParameters": gradients are taken by a tape', message_of(function() model:zeroGradParameters() end))
  end)

  it("knows JAX's names, and what PyTorch's layers have", function()
    assert.matches('no field "grad": local tape = flow.GradientTape', message_of(function() return flow.grad end))
    assert.matches('no field "vmap": flow.vectorized_map', message_of(function() return flow.vmap end))
    assert.matches('no field "state_dict": layer:get_weights', message_of(function() return flow.layers.Dense(1):state_dict() end))
    assert.matches("one argument too many: write x:reshape%(shape%)", message_of(function()
      local x = flow.ones({ 2, 2 }):view(-1, 4)
      return x
    end))
  end)

  it("finds TensorFlow's names in the modules that have operations, too", function()
    for _, module in ipairs { flow.math, flow.nn, flow.keras.ops } do
      assert.matches("has no .*reduce_std.*: flow.std%(x, axis, keepdims%)", message_of(function() return module.reduce_std end))
    end
  end)

  it("is sent to functions that are there", function()
    local gone = {}
    for module, names in pairs(require "flow.errors.elsewhere") do
      for name, place in pairs(names) do
        for path in (type(place) == "string" and place or ""):gmatch "%f[%w]flow%.([%a_][%w_.]*)%f[^%w_.]%(?" do
          local found = flow
          for part in path:gsub("%.$", ""):gmatch "[^.]+" do
            local ok, value = pcall(function() return found[part] end)
            found = ok and value or nil
            if found == nil then break end
          end
          if found == nil and path ~= "h" then gone[#gone + 1] = module .. "." .. name .. ": flow." .. path end
        end
      end
    end
    table.sort(gone)
    assert.equal("", table.concat(gone, "\n"))
  end)

  it("sets no globals", function()
    local before = {}
    for name in pairs(_G) do before[name] = true end
    for name in pairs(package.loaded) do
      if name:match("^flow") then package.loaded[name] = nil end
    end
    local again = require "flow"
    for _, name in ipairs { "fn", "args", "random", "config", "repl", "GradientTape", "layers", "Sequential" } do
      assert.is_truthy(again[name], name)
    end
    local added = {}
    for name in pairs(_G) do
      if not before[name] then added[#added + 1] = name end
    end
    assert.same({}, added)
  end)
end)

describe("flow.config", function()
  it("sets threads and refuses what this build does not have", function()
    local before = flow.config.get_threads()
    flow.config.set_threads(1)
    assert.equal(1, flow.config.get_threads())
    flow.config.set_threads(before)
    assert.same({ "cpu:0" }, flow.config.list_devices("cpu"))
    flow.config.set_logical_devices("cpu", 1)
    assert.equal("flow.config.set_logical_devices: a whole number of devices from 1 to 64, got the number 0.5",
      message_of(function() flow.config.set_logical_devices("cpu", 0.5) end))
    assert.equal("flow.config.set_threads: a whole number from 0 (one per core), got the number -1",
      message_of(function() flow.config.set_threads(-1) end))
    assert.equal('flow.config.set_precision: "fast" or "exact", got the string "slow"',
      message_of(function() flow.config.set_precision("slow") end))
  end)

  it("gives the same bits for any number of threads", function()
    local before = flow.config.get_threads()
    local a = flow.random.normal({ 400, 300 }, { seed = 1 })
    local b = flow.random.normal({ 300, 200 }, { seed = 2 })
    flow.config.set_threads(1)
    local one = a:matmul(b):tanh():sum(1):totable()
    flow.config.set_threads(2)
    local two = a:matmul(b):tanh():sum(1):totable()
    flow.config.set_threads(before)
    assert.same(one, two)
  end)
end)
