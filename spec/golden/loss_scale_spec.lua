--- Dynamic loss scales against Keras: losses, scales and counts of every step, through overflows; a file that Keras wrote goes on as it
--- does there. The maker is loss_scale.py. For the CPU: on a GPU float16 overflows later, since sums that become float32 are not rounded
--- to it on their way, so that scales differ.
local support = require "spec.support.init"
local flow = require "flow"
local golden = require "spec.support.golden"
local tensor_file = require "flow.saving.tensor_file"
local cases = require "spec.golden.loss_scale"
local optimizers = flow.optimizers

local folder = support.root .. "spec/golden/keras/"
local TOLERANCE = { float32 = 1e-5, mixed_float16 = 2e-3 }       -- 11 bits in float16; Keras' losses in float32 differ by as much

local INNER = {
  momentum = function() return optimizers.SGD(0.1, { momentum = 0.9 }) end,
  adam = function() return optimizers.Adam(0.02, { global_clipnorm = 0.5 }) end,
  clipnorm = function() return optimizers.RMSprop(0.01, { clipnorm = 0.05 }) end,
  decay = function()
    return optimizers.AdamW(optimizers.schedules.ExponentialDecay(0.05, 3, 0.5), { weight_decay = 0.1, clipvalue = 0.02 })
  end,
  float32 = function() return optimizers.Adam(0.02, { amsgrad = true }) end,
}

local function net(case)
  local model = flow.Sequential { flow.layers.Input { 6 }, flow.layers.Dense(8, { activation = "tanh" }),
                                  flow.layers.Dense(3, { dtype = "float32" }) }
  model:set_weights(golden.make_all(case.weights))
  model:compile {
    optimizer = optimizers.LossScaleOptimizer(INNER[case.name](), case.initial_scale, case.growth),
    loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true },
  }
  return model
end

-- Steps from `first` on.
local function goes_on(model, case, first)
  local x, y, scaled = golden.make(case.x), golden.make(case.y), model.optimizer
  for step = first, #case.losses do
    local what = "step " .. step
    assert.near(case.losses[step], model:train_on_batch(x, y).loss, TOLERANCE[case.policy], what)
    assert.near(case.scales[step], scaled.dynamic_scale:item(), 1e-7 * case.scales[step], what)
    assert.equal(case.counters[step], scaled.step_counter:item(), what)
    assert.equal(case.iterations[step], scaled.iterations, what)
  end
end

describe("a dynamic loss scale as in Keras:", function()
  after_each(function() flow.mixed_precision.set_global_policy("float32") end)

  for _, case in ipairs(cases) do
    it(case.name, function()
      flow.mixed_precision.set_global_policy(case.policy)
      goes_on(net(case), case, 1)
    end)
  end

  local saved
  for _, case in ipairs(cases) do if case.name == "adam" then saved = case end end

  it("goes on from Keras' file", function()
    local model = flow.load_model(folder .. "scaled.keras")
    assert.equal("mixed_float16", model.dtype_policy.name)
    assert.equal(saved.scales[saved.saved_after], model.optimizer.dynamic_scale:item())
    assert.equal(saved.iterations[saved.saved_after], model.optimizer.iterations)
    goes_on(model, saved, saved.saved_after + 1)
  end)

  it("goes on from Keras' weights", function()
    flow.mixed_precision.set_global_policy("mixed_float16")
    local model = net(saved)
    model:load_weights(folder .. "scaled.weights.h5")
    goes_on(model, saved, saved.saved_after + 1)
  end)

  for _, case in ipairs(require "spec.golden.loss_scale_inner") do
    it(case.inner .. " inside goes on from Keras' file and from its own, which has what Keras' has", function()
      local x, y, path = golden.make(case.x), golden.make(case.y), support.path ".keras"
      local theirs = folder .. "scaled_" .. case.inner .. ".keras"
      local model = flow.load_model(theirs)
      model:save(path)
      local read = flow.load_model(path)
      for step, loss in ipairs(case.losses) do
        local own = model:train_on_batch(x, y).loss
        assert.near(loss, own, 1e-5, "step " .. step)
        assert.equal(own, read:train_on_batch(x, y).loss)
      end
      local a, b = tensor_file.open(theirs, "model.weights.h5"), tensor_file.open(path, "model.weights.h5")
      for k = 1, a.count do assert.same(a:shape(a:name_of(k)), b:shape(a:name_of(k)), a:name_of(k)) end
      for k = 1, b.count do assert.truthy(a:find(b:name_of(k)) or b:name_of(k):find "/beside/", b:name_of(k)) end
    end)
  end

  it("Nadam inside keeps its product of momenta in files", function()
    local case = require "spec.golden.loss_scale_inner"[1]
    local x, y, path = golden.make(case.x), golden.make(case.y), support.path ".keras"
    local model = flow.load_model(folder .. "scaled_nadam.keras")
    model:train_on_batch(x, y)
    model:save(path)
    local variables, read = model.optimizer.variables, flow.load_model(path).optimizer.variables
    assert.equal("nadam/u_product", read[#read].path)
    assert.is_true(read[#read]:item() < 1)
    for k, v in ipairs(variables) do assert.same(v:value():totable(), read[k]:value():totable(), v.path) end
  end)
end)
