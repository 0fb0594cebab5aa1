-- own_named_outputs_spec.lua: models whose call(), written by a script, returns a table by name: losses, metrics and targets go by its
-- keys. Numbers are those of Keras 3.15 for the same model and data.
local flow = require "flow"
local support = require "spec.support.init"

local layers, message_of = flow.layers, support.message_of
local Model = flow.Model:extend "Model"
function Model:init()
  self.a = layers.Dense(1, { kernel_initializer = "ones" })
  self.b = layers.Dense(2, { kernel_initializer = "ones" })
end
function Model:call(x) return { price = self.a(x), kind = self.b(x) } end
local Wide = Model:extend "Wide"      -- with an output that nothing is said of
function Wide:call(x) return { price = self.a(x), kind = self.b(x), extra = x } end

local x = flow.arange(24):reshape({ 8, 3 }):to "float32" / 10
local y = { price = flow.ones { 8, 1 }, kind = flow.zeros { 8, 2 } }
local LOSS = { price = "mse", kind = "mae" }
local QUIET = { verbose = 0, shuffle = false, batch_size = 4 }

local function near(expected, results)
  for name, value in pairs(expected) do
    local found = results[name]
    if type(found) == "table" then found = found[1] end
    assert.is_true(math.abs(found - value) < 1e-4 * math.abs(value), ("%s: %g"):format(name, found))
  end
end

-- A model that was compiled with losses by name.
local function compiled(class, options)
  local model = class()
  local all = { optimizer = flow.optimizers.SGD(0.01), loss = LOSS, loss_weights = { price = 1, kind = 2 },
                metrics = { price = { "mae" }, kind = "mse" } }
  for name, value in pairs(options or {}) do all[name] = value end
  model:compile(all)
  return model
end

local FIRST = { kind_loss = 3.43046238, kind_mse = 15.94506454, loss = 16.73916817, price_loss = 9.87824345, price_mae = 2.58188248 }
local AFTER = { kind_loss = 3.35025024, kind_mse = 15.28330898, loss = 12.81797028, price_loss = 6.11747026, price_mae = 2.01456428 }

describe("a model of one's own with outputs by name", function()
  for name, class in pairs { ["all of them in compile"] = Model, ["one more than compile names"] = Wide } do
    it("trains, is evaluated and predicts as in Keras: " .. name, function()
      local model = compiled(class)
      near(FIRST, model:fit(x, y, QUIET).history)
      near(AFTER, model:evaluate(x, y, { verbose = 0 }))
      for _, results in ipairs { model:predict(x, { verbose = 0 }), model:predict_on_batch(x), model:predict_on_batch(x) } do
        assert.are.equal("{8, 1}", tostring(results.price.shape))
        assert.are.equal("{8, 2}", tostring(results.kind.shape))
        assert.are.equal(class == Wide, results.extra ~= nil)
      end
      near({ kind_loss = AFTER.kind_loss }, model:evaluate(x, y, { verbose = 0 }))      -- what predict learned changes nothing
    end)
  end

  it("takes data sets, several devices and steps that run eagerly", function()
    local data = flow.data.Dataset.from_tensor_slices { x, y }:batch(4)
    near(FIRST, compiled(Model):fit(data, { verbose = 0 }).history)
    near(FIRST, compiled(Model, { run_eagerly = true }):fit(data, { verbose = 0 }).history)
    flow.config.set_logical_devices("cpu", 2)
    local strategy, model = flow.distribute.MirroredStrategy { devices = { "cpu:0", "cpu:1" } }, nil
    strategy.scope(function() model = compiled(Model) end)
    near(FIRST, model:fit(data, { verbose = 0 }).history)
    assert.are.equal("{8, 2}", tostring(model:predict(x, { verbose = 0 }).kind.shape))
  end)

  it("may have a loss for some outputs, one loss for all, or none", function()
    local some = compiled(Wide, { loss = { price = "mse" }, loss_weights = false, metrics = false })
    near({ loss = 10.255001 }, some:fit(x, { price = y.price }, { verbose = 0 }).history)
    local one = Wide()
    one:compile { optimizer = "sgd", loss = "mse" }
    near({ loss = 26.41 }, one:fit(x, { price = y.price, kind = y.kind, extra = x }, { verbose = 0 }).history)
    local results = Wide():predict(x, { verbose = 0 })
    assert.are.equal("{8, 3}", tostring(results.extra.shape))
  end)

  it("is compiled anew with other names", function()
    local model = compiled(Model)
    model:fit(x, y, QUIET)
    model:compile { optimizer = "sgd", loss = { kind = "mae" } }
    assert.is_nil(model:fit(x, { kind = y.kind }, QUIET).history.price_loss)
  end)

  it("says which output is not there", function()
    local model = compiled(Model, { loss = { price = "mse", none = "mse" }, loss_weights = false, metrics = false })
    assert.is_truthy(message_of(function() model:fit(x, { price = y.price, none = y.price }, QUIET) end):find(
      'the output "none" has a loss, a metric or a target, but call() returns kind, price', 1, true))
    local other = compiled(Model)
    assert.is_truthy(message_of(function() other:fit(x, { price = y.price, kinds = y.kind }, QUIET) end):find(
      'y has "kinds", which is not one of the outputs kind, price', 1, true))
  end)

  it("is read from a file, and is a part of other models, which go into files", function()
    local model, folder = compiled(Wide), support.folder()
    model:fit(x, y, QUIET)
    model:save(folder .. "/own.keras")
    local again = flow.load_model(folder .. "/own.keras", { custom_objects = { Wide = Wide } })
    near(AFTER, again:evaluate(x, y, { verbose = 0 }))
    near(AFTER, again:predict_on_batch(x) and again:evaluate(x, y, { verbose = 0 }))
    local input = flow.Input { 3 }
    local outputs = model(input)
    local whole = flow.Model { inputs = input, outputs = { sum = outputs.price + outputs.extra, kind = outputs.kind } }
    local expected = model(x)
    whole:save(folder .. "/whole.keras")
    for _, one in ipairs { whole, flow.load_model(folder .. "/whole.keras", { custom_objects = { Wide = Wide } }) } do
      local results = one:predict(x, { verbose = 0 })
      assert.is_true((results.sum - expected.price - x):abs():max():item() < 1e-6)
      assert.is_true((results.kind - expected.kind):abs():max():item() < 1e-6)
    end
    flow.io.rmtree(folder)
  end)

  it("takes a metric that stands alone, of one output", function()
    local model = flow.Sequential { flow.Input { 3 }, layers.Dense(1) }
    model:compile { loss = "mse", metrics = flow.metrics.MeanAbsoluteError() }
    assert.is_number(model:evaluate(x, y.price, { verbose = 0 }).mean_absolute_error)
  end)
end)
