-- own_schedules_files_spec.lua: schedules that are classes of scripts, in the files of models that are compiled with them.
local support = require "spec.support.init"
local flow = require "flow"
local json = require "flow.json"
local optimizers, message_of = flow.optimizers, support.message_of
local schedules = optimizers.schedules
local x, y = flow.random.normal({ 8, 3 }, { seed = 1 }), flow.random.normal({ 8, 1 }, { seed = 2 })

-- By what their init was given, by get_config, by options, and as a class that extends one of the library's.
local Given = schedules.LearningRateSchedule:extend "Given"
function Given:init(base, warm)
  self.base, self.warm, self.scale = base, warm, flow.tensor(1)
end
function Given:call(step) return self.scale * self.base / (step + self.warm) end

local Said = schedules.LearningRateSchedule:extend "Said"
function Said:init(options) self.base = options.base end
function Said:call(step) return self.base / (step + 1) end
function Said:get_config() return { base = self.base } end

local Fields = schedules.LearningRateSchedule:extend "Fields"
function Fields:call(step) return self.base / (step + 2) end

local Warm = schedules.CosineDecay:extend "Warm"
function Warm:init(rate, steps, warm)
  schedules.CosineDecay.init(self, rate, steps)
  self.warm = warm
end
function Warm:call(step) return flow.where(step:lt(self.warm), step * 0.01, schedules.CosineDecay.call(self, step)) end

local CLASSES = { Given = Given, Said = Said, Fields = Fields, Warm = Warm }
local MAKE = {
  Given = function() return Given(0.1, 3) end, Said = function() return Said { base = 0.1 } end,
  Fields = function() return Fields { base = 0.1 } end, Warm = function() return Warm(0.1, 10, 3) end,
}
local OPTIMIZERS = {
  Adam = optimizers.Adam, Muon = optimizers.Muon,
  AdamW = function(rate) return optimizers.AdamW { learning_rate = rate, clipnorm = 1 } end,
  LossScaleOptimizer = function(rate) return optimizers.LossScaleOptimizer(optimizers.SGD(rate)) end,
}

local function compiled(optimizer)
  flow.set_random_seed(1)
  local model = flow.Sequential { flow.layers.Input { 3 }, flow.layers.Dense(1) }
  model:compile { optimizer = optimizer, loss = "mse" }
  return model
end

local function losses_of(model) return model:fit(x, y, { epochs = 2, batch_size = 4, shuffle = false, verbose = 0 }).history.loss end

describe("a schedule of a script's class", function()
  for optimizer, make_optimizer in pairs(OPTIMIZERS) do
    for class, make in pairs(MAKE) do
      it(("is kept with %s in the model's file: %s"):format(optimizer, class), function()
        local model, path = compiled(make_optimizer(make())), support.path "schedule.keras"
        losses_of(model)
        model:save(path)
        local again = flow.load_model(path, { custom_objects = CLASSES })
        assert.equal(model.optimizer.learning_rate, again.optimizer.learning_rate)
        assert.same(losses_of(model), losses_of(again))
        local clone
        assert.equal("", support.warnings(function() clone = flow.models.clone_model(model) end))
        assert.equal(make()(0), clone.optimizer.learning_rate)
      end)
    end
  end

  it("is described as Keras describes it", function()      -- keras.optimizers.serialize(Adam(Given(0.1, 3)))["config"]["learning_rate"]
    assert.same({ module = json.null, class_name = "Given", config = { base = 0.1, warm = 3 }, registered_name = "Given" },
      optimizers.serialize(optimizers.Adam(Given(0.1, 3))).config.learning_rate)
  end)

  it("leaves the model uncompiled where its class is not known, and is refused where a file cannot hold it", function()
    local model, path = compiled(optimizers.Adam(Given(0.1, 3))), support.path "schedule.keras"
    model:save(path)
    local warning = support.warnings(function() flow.load_model(path) end)
    assert.truthy(warning:find("the schedule Given is not known: give its class, custom_objects = { Given = class }", 1, true), warning)
    local Held = schedules.LearningRateSchedule:extend "Held"
    function Held:init(rates) self.rates = rates end
    function Held:call() return self.rates:max() end
    local message = message_of(function() compiled(optimizers.Adam(Held(flow.ones { 2 }))):save(path) end)
    assert.truthy(message:find("Held: a file does not hold what its init was given as rates: give its class a get_config()", 1, true),
      message)
  end)
end)
