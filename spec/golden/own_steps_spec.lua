-- own_steps_spec.lua: models with their own steps under compile and fit, in the form of own_steps.py, against what Keras' learn.
require "spec.support.init"
local flow = require "flow"
local layers = flow.layers
local expected = require "spec.golden.own_steps"

flow.log.sink = function() end
flow.config.set_logical_devices("cpu", 2)
local ROWS, BATCH = 18, 4

local function wave(shape, step, shift)
  local count, list = 1, {}
  for _, n in ipairs(shape) do count = count * n end
  for i = 1, count do list[i] = math.sin(step * (i - 1) + (shift or 0)) end
  return flow.tensor(list):reshape(shape)
end

local function dense(sizes, last)
  local list, sum = { layers.Input { sizes[1] } }, 0
  for i = 2, #sizes - 1 do list[i] = layers.Dense(sizes[i], { activation = "tanh" }) end
  list[#sizes] = layers.Dense(sizes[#sizes], { activation = last })
  for _, n in ipairs(sizes) do sum = sum + n end
  local model, weights = flow.Sequential(list), {}
  for i, w in ipairs(model:get_weights()) do weights[i] = 0.5 * wave(w.shape, 1.7, sum + i - 1) end
  model:set_weights(weights)
  return model
end

-- Records f with a tape and applies the gradients of its first result; returns its results.
local function update(optimizer, variables, f)
  local tape = flow.GradientTape()
  local results = { tape:record(f) }
  optimizer:apply_gradients(tape:gradient(results[1], variables), variables)
  return unpack(results)
end

local VAE = flow.Model:extend "VAE"
function VAE:init() self.encoder, self.decoder = dense { 6, 8, 4 }, dense({ 2, 8, 6 }, "sigmoid") end
function VAE:train_step(data)
  local x, noise = unpack(data)
  local _, reconstruction, kl = update(self.optimizer, self.trainable_weights, function()
    local mean, log_var = unpack(flow.split(self.encoder(x), 2, 2))
    local z = mean + (0.5 * log_var):exp() * noise
    local lost = (x - self.decoder(z)):square():sum(2):mean()
    local kl = (-0.5 * (1 + log_var - mean:square() - log_var:exp())):sum(2):mean()
    return lost + kl, lost, kl
  end)
  return { reconstruction = reconstruction, kl = kl }
end

local GAN = flow.Model:extend "GAN"
function GAN:init() self.generator, self.discriminator = dense({ 3, 8, 6 }, "sigmoid"), dense { 6, 8, 1 } end
function GAN:compile(d_optimizer, g_optimizer)
  flow.Model.compile(self)
  self.d_optimizer, self.g_optimizer = d_optimizer, g_optimizer
  self.loss_fn = flow.losses.BinaryCrossentropy { from_logits = true }
end
function GAN:train_step(data)
  local x, noise, more = unpack(data)
  local rows = flow.shape(x)[1]
  local both = flow.concat({ self.generator(noise), x }, 1)
  local labels = flow.concat({ flow.ones { rows, 1 }, flow.zeros { rows, 1 } }, 1)
  local d_loss = update(self.d_optimizer, self.discriminator.trainable_weights, function()
    return self.loss_fn(labels, self.discriminator(both))
  end)
  local g_loss = update(self.g_optimizer, self.generator.trainable_weights, function()
    return self.loss_fn(flow.zeros { rows, 1 }, self.discriminator(self.generator(more)))
  end)
  return { d_loss = d_loss, g_loss = g_loss }
end

local WGAN = GAN:extend "WGAN"
function WGAN:gradient_penalty(real, fake, alpha)
  local mixed = real + alpha * (fake - real)
  local tape = flow.GradientTape()
  tape:watch(mixed)
  local judged = tape:record(function() return self.discriminator(mixed, { training = true }) end)
  local norm = tape:gradient(judged, { mixed })[1]:square():sum(2):sqrt()
  return ((norm - 1) ^ 2):mean()
end
function WGAN:train_step(data)
  local x, noise, more, alpha = unpack(data)
  local function judge(images) return self.discriminator(images, { training = true }):mean() end
  local d_loss
  for _, z in ipairs { noise, more } do
    d_loss = update(self.d_optimizer, self.discriminator.trainable_weights, function()
      local fake = self.generator(z, { training = true })
      return judge(fake) - judge(x) + 10 * self:gradient_penalty(x, fake, alpha)
    end)
  end
  local g_loss = update(self.g_optimizer, self.generator.trainable_weights, function()
    return -judge(self.generator(noise, { training = true }))
  end)
  return { d_loss = d_loss, g_loss = g_loss }
end

local Distiller = flow.Model:extend "Distiller"
function Distiller:init()
  self.teacher, self.student = dense { 6, 12, 3 }, dense { 6, 4, 3 }
  self.teacher.trainable = false
end
function Distiller:compile(optimizer, metrics, temperature, alpha)
  flow.Model.compile(self, { optimizer = optimizer, metrics = metrics })
  self.temperature, self.alpha = temperature, alpha
  self.student_loss_fn = flow.losses.SparseCategoricalCrossentropy { from_logits = true }
  self.distillation_loss_fn = flow.losses.KLDivergence()
end
function Distiller:compute_loss(x, y, y_pred)
  local function soft(logits) return flow.softmax(logits / self.temperature, 2) end
  local distilled = self.distillation_loss_fn(soft(self.teacher(x, { training = false })), soft(y_pred)) * self.temperature ^ 2
  return self.alpha * self.student_loss_fn(y, y_pred) + (1 - self.alpha) * distilled
end
function Distiller:call(x) return self.student(x) end

local x = 0.5 + 0.5 * wave({ ROWS, 6 }, 0.37)
local noise, more, alpha = wave({ ROWS, 3 }, 0.91), wave({ ROWS, 3 }, 1.31), 0.5 + 0.5 * wave({ ROWS, 1 }, 0.53)
local labels = {}
for i = 1, ROWS do labels[i] = (i - 1) % 3 end

local function adam(rate) return flow.optimizers.Adam(rate or 0.02) end

local cases = {
  vae = { VAE, { x, noise[{ {}, { 1, 2 } }] }, { adam } },
  gan = { GAN, { x, noise, more }, { adam, function() return adam(0.01) end } },
  wgan = { WGAN, { x, noise, more, alpha }, { adam, function() return adam(0.01) end } },
  distiller = { Distiller, { x, flow.tensor(labels, { dtype = "int32" }) }, { adam, { "accuracy" }, 3, 0.1 } },
}

-- What each batch reports, and the weights after the last one. options: of compile, where the class does not take its own.
local function run(case, replicas, eagerly)
  local class, arrays, arguments = unpack(case)
  local devices, model, given, seen = {}, nil, {}, {}
  for i = 1, replicas do devices[i] = ("cpu:%d"):format(i - 1) end
  for i, argument in ipairs(arguments) do given[i] = type(argument) == "function" and argument() or argument end
  flow.distribute.MirroredStrategy { devices = devices }.scope(function()
    model = class()
    model:compile(unpack(given))
    if eagerly then model._compiled.run_eagerly = true end
  end)
  local ds = flow.data.Dataset.from_tensor_slices(arrays):batch(BATCH)
  model:fit(ds, { verbose = 0, callbacks = { flow.callbacks.LambdaCallback { on_train_batch_end = function(_, logs)
    local kept = {}
    for key, value in pairs(logs) do kept[key] = value end
    seen[#seen + 1] = kept
  end } } })
  local weights = {}
  for _, name in ipairs { "encoder", "decoder", "generator", "discriminator", "student" } do
    local part = rawget(model, "_assignments")[name]
    for _, w in ipairs(part and part:get_weights() or {}) do weights[#weights + 1] = w:reshape { -1 }:totable() end
  end
  return seen, weights
end

local function compare(name, seen, weights)
  assert.equal(5, #seen)
  for batch, logs in ipairs(expected[name].logs) do
    for key, value in pairs(logs) do assert.near(value, seen[batch][key], 1e-5, ("%s of batch %d"):format(key, batch)) end
  end
  assert.equal(#expected[name].weights, #weights)
  for i, list in ipairs(expected[name].weights) do
    assert.equal(#list, #weights[i])
    for k, value in ipairs(list) do assert.near(value, weights[i][k], 1e-5, ("weight %d of %d"):format(k, i)) end
  end
end

describe("five batches of steps as Keras has them:", function()
  for name, case in pairs(cases) do
    it(name .. ", traced", function() compare(name, run(case, 1)) end)
    it(name .. ", eagerly", function() compare(name, run(case, 1, true)) end)
    it(name .. ", on two replicas", function() compare(name, run(case, 2)) end)
  end
end)
