-- assignments_spec.lua: a field that is misspelt when it is set is an error with the name that is meant, for every public field that can be
-- set; what scripts keep on their own classes and on models goes on working.
local support = require "spec.support.init"
local flow = require "flow"
local layers, message_of = flow.layers, support.message_of

local Step = layers.Layer:extend("Step")
function Step:call(x) return x end
local Net = flow.Model:extend("Net")
local Watch = flow.callbacks.Callback:extend("Watch")
local Rate = flow.metrics.Metric:extend("Rate")

local function compiled()
  local model = flow.Sequential { layers.Input { 3 }, layers.Dense(2) }
  model:compile { loss = "mse" }
  return model
end

-- Objects, whether they are of a class of ours, and the names of fields that can be set on them, beside those that such an object has.
local HOOKS = "on_epoch_begin on_epoch_end on_train_begin on_train_batch_end on_test_end on_predict_begin"
local CASES = {
  { "an optimizer", function() return flow.optimizers.Adam() end, true, "learning_rate" },
  { "a loss scale", function() return flow.optimizers.LossScaleOptimizer(flow.optimizers.SGD()) end, true, "learning_rate" },
  { "a layer", function() return layers.Dense(2) end, true, "trainable" },
  { "a dataset", function() return flow.data.Dataset.range(3):batch(1) end, true, "" },
  { "a strategy", function() return flow.distribute.MirroredStrategy() end, true, "" },
  { "a loss", function() return flow.losses.Huber() end, true, "reduction" },
  { "a metric", function() return flow.metrics.AUC() end, true, "" },
  { "a schedule", function() return flow.optimizers.schedules.CosineDecay(1, 2) end, true, "" },
  { "a history", function() return flow.callbacks.History() end, true, "interrupted" },
  { "a callback", function() return flow.callbacks.EarlyStopping() end, true, "patience restore_best_weights " .. HOOKS },
  { "a checkpoint", function() return flow.train.Checkpoint { x = flow.Variable(1) } end, true, "" },
  { "a sequential model", compiled, false, "trainable stop_training" },
  { "a functional model", function()
    local input = flow.Input { 3 }
    return flow.Model { inputs = input, outputs = layers.Dense(1)(input) }
  end, false, "trainable stop_training" },
  { "a layer of a script", function() return Step() end, false, "trainable" },
  { "a model of a script", function() return Net() end, false, "trainable stop_training" },
  { "a callback of a script", function() return Watch() end, false, HOOKS },
  { "a metric of a script", function() return Rate() end, false, "" },
}

-- A letter left out, doubled, changed, two that changed places: of a name, all that no field has.
local function misspellings(object, name)
  local list, seen = {}, {}
  local function add(text)
    if not seen[text] and rawget(object, text) == nil and not pcall(function() return object[text] end) then
      seen[text], list[#list + 1] = true, text
    end
  end
  for i = 1, #name do
    add(name:sub(1, i - 1) .. name:sub(i + 1))
    add(name:sub(1, i) .. name:sub(i))
    add(name:sub(1, i - 1) .. "q" .. name:sub(i + 1))
    if i < #name and name:byte(i) ~= name:byte(i + 1) then
      add(name:sub(1, i - 1) .. name:sub(i + 1, i + 1) .. name:sub(i, i) .. name:sub(i + 2))
    end
  end
  return list
end

describe("a misspelt assignment", function()
  for _, case in ipairs(CASES) do
    local title, make, ours, names = unpack(case)
    it(("to %s is an error that knows what is meant"):format(title), function()
      local accepted, object = {}, make()
      for name in names:gmatch("%S+") do
        for _, wrong in ipairs(misspellings(object, name)) do
          local ok, message = pcall(function() object[wrong] = 1 end)
          if ok or not message:find("^[^\n]*_spec%.lua:%d+: ") or not message:find(('"%s"'):format(wrong), 1, true)
            or not message:find("did you mean", 1, true) then
            accepted[#accepted + 1] = wrong .. ": " .. tostring(message)
          end
        end
      end
      assert.equal("", table.concat(accepted, "\n"))
      if ours then
        local message = message_of(function() object.quite_another_thing = 1 end)
        local found = message:find('no field "quite_another_thing"', 1, true) or message:find "quite_another_thing is the number 1"
        assert.truthy(found, message)
      else
        object.quite_another_thing = 1
        assert.equal(1, object.quite_another_thing)
      end
    end)
  end

  it("is one where a class of a script defines a hook", function()
    local Mine = flow.callbacks.Callback:extend("Mine")
    local message = message_of(function() function Mine.on_epoch_ned(_) end end)
    assert.truthy(message:find('Mine: the field "on_epoch_ned" is nearly "on_epoch_end": did you mean that?', 1, true), message)
    function Mine:on_epoch_end() self.ended = true end
    function Mine:forget() self.ended = false end
    local mine = Mine()
    mine:on_epoch_end()
    assert.is_true(mine.ended)
  end)

  it("says which fields are computed", function()
    assert.equal('Adam "adam": its field "iterations" cannot be set', message_of(function()
      flow.optimizers.Adam({ name = "adam" }).iterations = 1
    end))
    assert.truthy(message_of(function() compiled().optimizer = 1 end):find('its field "optimizer" cannot be set', 1, true))
    assert.equal('a variable\'s field "trainabl" cannot be set; did you mean "trainable"?',
      message_of(function() flow.Variable(1).trainabl = false end))
  end)

  it("leaves alone what scripts keep", function()
    local optimizer, model = flow.optimizers.Adam(), compiled()
    optimizer.learning_rate = 0.5
    assert.equal(0.5, optimizer.learning_rate)
    model.stop_training, model.trainable, model.note = true, false, "mine"
    assert.same({ true, false, "mine" }, { model.stop_training, model.trainable, model.note })
    local stopping = flow.callbacks.EarlyStopping { monitor = "loss" }
    stopping.patience, stopping.on_epoch_end = 7, function() end
    assert.equal(7, stopping.patience)
    function Net:init() self.dense, self.d_optimizer, self.train, self.loss_fn = layers.Dense(2), optimizer, 1, "mse" end
    assert.equal(1, #Net().layers)
    function Step:build() self.kernel, self.bias, self.built = self:add_weight {}, 1, true end
    assert.equal(1, (Step()(flow.ones { 1 })):item())
    function Watch:init() self.best, self.wait, self.history = 1, 2, {} end
    assert.equal(2, Watch().wait)
  end)
end)
