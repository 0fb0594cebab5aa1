-- vae.lua: a variational autoencoder of handwritten digits, as in Keras' example "Variational AutoEncoder": a model with a train_step of
-- its own, whose loss is what the pictures lose on the way through two numbers, and how far these are from a normal distribution.
--
--   flowlua lua/examples/vae.lua                 the loss of test pictures falls from 320 to 217 in 30 epochs
local flow = require "flow"
local layers = flow.layers

local here = arg[0]:match("^(.*/)[^/]*$") or "./"
local options = flow.args { epochs = 30, batch_size = 64, seed = 1, path = here .. "digits" }
flow.set_random_seed(options.seed)

local LATENT = 2
local x_train, _, x_test = flow.datasets.mnist { path = options.path }
local function pictures(x) return x:to("float32"):reshape { -1, 28, 28, 1 } / 255 end

local function new_encoder()
  local input = flow.Input { 28, 28, 1 }
  local h = layers.Conv2D(16, 3, { strides = 2, padding = "same", activation = "relu" })(input)
  h = layers.Conv2D(32, 3, { strides = 2, padding = "same", activation = "relu" })(h)
  h = layers.Dense(32, { activation = "relu" })(layers.Flatten()(h))
  local z_mean, z_log_var = layers.Dense(LATENT, { name = "z_mean" })(h), layers.Dense(LATENT, { name = "z_log_var" })(h)
  return flow.Model { inputs = input, outputs = { z_mean, z_log_var } }
end

local function new_decoder()
  return flow.Sequential {
    layers.Input { LATENT }, layers.Dense(7 * 7 * 32, { activation = "relu" }), layers.Reshape { 7, 7, 32 },
    layers.Conv2DTranspose(32, 3, { strides = 2, padding = "same", activation = "relu" }),
    layers.Conv2DTranspose(16, 3, { strides = 2, padding = "same", activation = "relu" }),
    layers.Conv2DTranspose(1, 3, { padding = "same", activation = "sigmoid" }),
  }
end

local VAE = flow.Model:extend "VAE"

function VAE:init()
  self.encoder, self.decoder = new_encoder(), new_decoder()
  self.loss_tracker = flow.metrics.Mean { name = "loss" }
  self.reconstruction_tracker = flow.metrics.Mean { name = "reconstruction_loss" }
  self.kl_tracker = flow.metrics.Mean { name = "kl_loss" }
end

function VAE:metrics() return { self.loss_tracker, self.reconstruction_tracker, self.kl_tracker } end

-- The losses of pictures: all, what they lose, and the divergence.
function VAE:losses_of(x, training)
  local z_mean, z_log_var = unpack(self.encoder(x, { training = training }))
  local noise = flow.random.normal { flow.shape(x)[1], LATENT }
  local decoded = self.decoder(z_mean + (0.5 * z_log_var):exp() * noise, { training = training })
  local lost = flow.losses.binary_crossentropy(x, decoded):sum({ 2, 3 }):mean()
  local divergence = (-0.5 * (1 + z_log_var - z_mean:square() - z_log_var:exp())):sum(2):mean()
  return lost + divergence, lost, divergence
end

function VAE:note(loss, lost, divergence)
  self.loss_tracker:update_state(loss)
  self.reconstruction_tracker:update_state(lost)
  self.kl_tracker:update_state(divergence)
  return self:get_metrics_result()
end

function VAE:train_step(x)
  local tape = flow.GradientTape()
  local loss, lost, divergence = tape:record(function() return self:losses_of(x, true) end)
  self.optimizer:apply_gradients(tape:gradient(loss, self.trainable_weights), self.trainable_weights)
  return self:note(loss, lost, divergence)
end

function VAE:test_step(x) return self:note(self:losses_of(x, false)) end

local function batches(x) return flow.data.Dataset.from_tensor_slices(pictures(x)) end
local train = batches(x_train):shuffle(#x_train, { seed = options.seed }):batch(options.batch_size)

local vae = VAE()
vae:compile { optimizer = flow.optimizers.Adam(0.003) }
local test = batches(x_test):batch(options.batch_size)
local history = vae:fit(train, { epochs = options.epochs, validation_data = test, verbose = 2 }).history
print(("test loss %.1f in the first epoch, %.1f in the last"):format(history.val_loss[1], history.val_loss[#history.val_loss]))
