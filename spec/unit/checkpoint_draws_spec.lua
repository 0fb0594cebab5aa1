-- checkpoint_draws_spec.lua: training that goes on from a flow.train.Checkpoint with flow.random draws what an uninterrupted one draws:
-- layers, generators and draws without a seed, in steps of models and in traced functions of own loops.
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers

local x = flow.random.normal({ 16, 4 }, { seed = 1 })
local y = x:sum(-1, true)

-- Noise for a step, by kind.
local function noise_of(kind, shape, generator, seeds)
  if kind == "Generator" then return generator:normal(shape) + generator:uniform(shape) end
  if kind == "SeedGenerator" then return flow.random.normal(shape, { seed = seeds }) + flow.random.uniform(shape, { seed = seeds }) end
  return flow.random.normal(shape)
end

-- A program from its beginning: what runs a number of steps and gives their losses, and the checkpoint of all it has.
local function own_loop(kind, eager)
  flow.set_random_seed(7)
  local generator, seeds = flow.random.Generator.from_seed(5), flow.random.SeedGenerator(9)
  local model = flow.Sequential { layers.Input { 4 }, layers.Dense(8, { activation = "relu" }), layers.Dropout(0.5), layers.Dense(1) }
  local optimizer = flow.optimizers.Adam(0.01)
  local function step(inputs, targets)
    local tape = flow.GradientTape()
    local loss = tape:record(function()
      local difference = model(inputs + noise_of(kind, inputs.shape, generator, seeds), { training = true }) - targets
      return (difference * difference):mean()
    end)
    optimizer:apply_gradients(tape:gradient(loss, model.trainable_variables), model.trainable_variables)
    return loss
  end
  local run = eager and step or flow.fn(step)
  generator:normal { 2 }
  seeds:next()
  return function(count)
    local losses = {}
    for i = 1, count do losses[i] = run(x, y):item() end
    losses[count + 1], losses[count + 2], losses[count + 3] = generator:normal({ 1 }):item(), seeds:next(), flow.random.normal({ 1 }):item()
    return losses
  end, flow.train.Checkpoint { model = model, optimizer = optimizer, generator = generator, seeds = seeds, random = flow.random }
end

local Own = flow.Model:extend "Own"
function Own:init() self.first, self.drop, self.last = layers.Dense(8, { activation = "relu" }), layers.Dropout(0.5), layers.Dense(1) end
function Own:call(inputs, options) return self.last(self.drop(self.first(inputs), options)) end
function Own:train_step(data)
  local tape = flow.GradientTape()
  local loss = tape:record(function()
    local y_pred = self(data[1] + noise_of(self.kind, data[1].shape, self.generator, self.seeds), { training = true })
    return self:compute_loss { x = data[1], y = data[2], y_pred = y_pred }
  end)
  self.optimizer:apply_gradients(tape:gradient(loss, self.trainable_variables), self.trainable_variables)
  return { loss = loss }
end

local function fitted(kind, eager)
  flow.set_random_seed(7)
  local generator, seeds = flow.random.Generator.from_seed(5), flow.random.SeedGenerator(9)
  local model
  if kind == "layers" then
    model = flow.Sequential { layers.Input { 4 }, layers.Dense(8, { activation = "relu" }), layers.Dropout(0.5), layers.Dense(1) }
  else
    model = Own()
    model.kind, model.generator, model.seeds = kind, generator, seeds
    model:build { -1, 4 }
  end
  model:compile { optimizer = flow.optimizers.Adam(0.01), loss = "mse", run_eagerly = eager }
  return function(count) return model:fit(x, y, { epochs = count, batch_size = 8, verbose = 0 }).history.loss end,
    flow.train.Checkpoint { model = model, generator = generator, seeds = seeds, random = flow.random }
end

describe("a checkpoint with flow.random", function()
  local function goes_on(title, program, kind, eager)
    it(("goes on with the numbers that would have come: %s, %s, %s"):format(title, kind, eager and "eagerly" or "traced"), function()
      local path = support.folder() .. "/draws"
      local run = program(kind, eager)
      run(3)
      local expected = run(2)
      local before, checkpoint = program(kind, eager)
      before(3)
      checkpoint:write(path)
      local after, again = program(kind, eager)
      again:restore(path):assert_consumed()
      assert.same(expected, after(2))
    end)
  end
  for _, eager in ipairs { false, true } do
    for _, kind in ipairs { "no seed", "Generator", "SeedGenerator" } do
      goes_on("an own loop", own_loop, kind, eager)
      goes_on("an own train_step", fitted, kind, eager)
    end
    goes_on("fit", fitted, "layers", eager)
  end

  it("is read without the numbers of steps, as older ones are, and by models that are not compiled", function()
    local path = support.folder() .. "/plain"
    local model = flow.Sequential { layers.Input { 4 }, layers.Dense(1) }
    flow.train.Checkpoint { model = model }:write(path)
    model:compile { loss = "mse" }
    flow.train.Checkpoint { model = model }:restore(path):expect_partial()
    model:fit(x, y, { verbose = 0 })
    local file = flow.train.Checkpoint { model = model }:write(path .. "-2")
    local plain = flow.Sequential { layers.Input { 4 }, layers.Dense(1) }
    for _, name in ipairs(flow.train.Checkpoint({ model = plain }):restore(file):expect_partial().unused) do
      assert.matches("optimizer", name)
    end
  end)
end)
