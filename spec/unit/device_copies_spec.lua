--- 16-bit copies of weights on a GPU last from step to step: updates write them with the weights (core/plan/passes/join_casts.c), and what
--- else writes a weight has them made again. Steps with copies that were just made from the weights must give the same bits.
local emulated = require "spec.support.emulated"
local flow = require "flow"

if emulated.missing() then
  pending("copies of weights on devices: " .. emulated.missing())
  return
end

local ffi = require "ffi"
local launches = require "spec.support.launches"
local support = require "spec.support.init"
local layers = flow.layers

local x = flow.random.normal({ 8, 40 }, { seed = 1 })
local y = flow.random.uniform({ 8 }, { maxval = 5, dtype = "int32", seed = 2 })

local function build(options)
  local model
  options = options or {}
  flow.set_random_seed(3)
  flow.device("gpu:0", function()
    model = flow.Sequential {
      layers.Input { 40 }, layers.Dense(37, { activation = "relu", kernel_constraint = options.constraint }),
      layers.Dense(130, { activation = "relu", trainable = not options.frozen }), layers.Dense(5, { dtype = "float32" }),
    }
    model:compile { optimizer = options.optimizer and options.optimizer() or flow.optimizers.Adam(0.01),
                    loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
  end)
  return model
end

local function weights(model)
  local all = {}
  for i, v in ipairs(model.variables) do all[i] = v:value():to("cpu"):flatten():totable() end
  return all
end

--- Writes each weight as it is, which the copies do not know.
local function touch(model) model:set_weights(model:get_weights()) end

--- Trains two models alike; the second one's weights are written before each step.
local function compare(make, step)
  local kept, made = make(), make()
  for i = 1, 5 do
    touch(made)
    step(kept, i)
    step(made, i)
    assert.same(weights(made), weights(kept), "step " .. i)
  end
end

local function train(model) model:train_on_batch(x, y) end

--- The kernels of the last step that was recorded.
local function kernels_of(f)
  local path, found = support.file("launches", ""), {}
  ffi.C.setenv("FLOW_EMULATED_LAUNCHES", path, 1)
  f()
  ffi.C.setenv("FLOW_EMULATED_LAUNCHES", "", 1)
  for _, launch in ipairs(launches.read(path)) do found[launch.kernel] = (found[launch.kernel] or 0) + 1 end
  return found
end

for _, policy in ipairs { "mixed_bfloat16", "mixed_float16" } do
  describe("copies of weights on a GPU in " .. policy, function()
    before_each(function() flow.mixed_precision.set_global_policy(policy) end)
    after_each(function() flow.mixed_precision.set_global_policy "float32" end)

    it("are not made by a step of training, nor by a prediction", function()
      local model = build()
      local found = kernels_of(function() for _ = 1, 4 do train(model) end end)
      assert.is_nil(found.narrow_arrays)
      assert.equal(1, found.adam_update_half_floats)
      found = kernels_of(function() for _ = 1, 4 do model:predict_on_batch(x) end end)
      assert.is_nil(found.narrow_arrays)
      assert.is_true(found.emulated_product >= 3)
    end)

    for name, optimizer in pairs {
      Adam = function() return flow.optimizers.Adam(0.01) end,
      SGD = function() return flow.optimizers.SGD { learning_rate = 0.1, momentum = 0.9, weight_decay = 0.01 } end,
      Lion = function() return flow.optimizers.Lion(0.01) end,
      clipped = function() return flow.optimizers.Adam { learning_rate = 0.01, global_clipnorm = 0.5 } end,
      averaged = function() return flow.optimizers.SGD { learning_rate = 0.1, use_ema = true, ema_overwrite_frequency = 2 } end,
    } do
      it("are those of the weights: " .. name, function() compare(function() return build { optimizer = optimizer } end, train) end)
    end

    it("are those of the weights where layers are frozen or constrained", function()
      compare(function() return build { frozen = true } end, train)
      compare(function() return build { constraint = flow.constraints.MaxNorm(0.5) } end, train)
    end)

    it("are those of the weights where other steps, predictions and assignments come between", function()
      compare(build, function(model, i)
        train(model)
        if i % 2 == 0 then model:train_on_batch(x:cast("float64"), y) end
        if i == 3 then model.layers[1].kernel:assign(model.layers[1].kernel:value() * 1.5) end
        train(model)
        model:predict_on_batch(x)
        if i == 4 then model:train_on_batch(x[{ { 1, 3 } }], y[{ { 1, 3 } }]) end
      end)
    end)

    it("are those of the weights after a step that was refused", function()
      local wrong = flow.full({ 8 }, 9, { dtype = "int32" })
      compare(build, function(model, i)
        train(model)
        if i == 2 then assert.is_false(pcall(model.train_on_batch, model, x, wrong)) end
        train(model)
      end)
    end)

    local function fit(model) model:fit(x:tile { 8, 1 }, y:tile { 8 }, { batch_size = 8, epochs = 2, shuffle = false, verbose = 0 }) end

    it("are those of the weights in fit, whose steps are recorded together", function() compare(build, fit) end)

    it("are those of the weights on two replicas", function()
      local strategy = flow.distribute.MirroredStrategy { "gpu:0", "gpu:1" }
      local function make()
        local model
        strategy.scope(function() model = build() end)
        return model
      end
      compare(make, train)
      compare(make, fit)
    end)

    local sgd = { optimizer = function() return flow.optimizers.SGD(0.1) end }

    for name, write in pairs {
      set_weights = function(model, values) model:set_weights(values) end,
      assign = function(model, values) for i, v in ipairs(model.variables) do v:assign(values[i]) end end,
      ["another step"] = function(model) for _ = 1, 3 do model:train_on_batch(x:cast("float64") * 3, y) end end,
      load_weights = function(model, values)
        local path, other = support.file("other", ""):match("^(.*)/") .. "/other.weights.h5", build(sgd)
        other:set_weights(values)
        other:save_weights(path)
        model:load_weights(path)
      end,
    } do
      it("are made again after " .. name, function()
        local kept, fresh, values = build(sgd), build(sgd), {}
        for i, v in ipairs(build(sgd).variables) do values[i] = v:value():to("cpu") * -0.5 end
        for _ = 1, 3 do train(kept) end
        write(kept, values)
        fresh:set_weights(kept:get_weights())
        for _ = 1, 2 do
          local found, expected = kept:train_on_batch(x, y).loss, fresh:train_on_batch(x, y).loss
          assert.equal(expected, found)
          assert.same(weights(fresh), weights(kept))
        end
      end)
    end
  end)
end
