-- gan.lua: two nets learn from each other to draw handwritten digits, as in Keras' guide "Customizing what happens in fit()": one
-- train_step with two optimizers. A third net, which has learnt to read digits, then says what is drawn.
--
--   flowlua lua/examples/gan.lua                 all ten digits among 400 pictures, read with a confidence of 0.82
local flow = require "flow"
local layers = flow.layers

local here = arg[0]:match("^(.*/)[^/]*$") or "./"
local options = flow.args { epochs = 30, batch_size = 32, seed = 1, path = here .. "digits" }
flow.set_random_seed(options.seed)

local LATENT = 32
local x_train, y_train = flow.datasets.mnist { path = options.path }
local pictures = x_train:to("float32"):reshape { -1, 28, 28, 1 } / 255

local GAN = flow.Model:extend "GAN"

function GAN:init()
  self.discriminator = flow.Sequential {
    layers.Input { 28, 28, 1 },
    layers.Conv2D(16, 3, { strides = 2, padding = "same" }), layers.LeakyReLU(0.2),
    layers.Conv2D(32, 3, { strides = 2, padding = "same" }), layers.LeakyReLU(0.2),
    layers.Flatten(), layers.Dropout(0.3), layers.Dense(1),
  }
  self.generator = flow.Sequential {
    layers.Input { LATENT },
    layers.Dense(7 * 7 * 16), layers.LeakyReLU(0.2), layers.Reshape { 7, 7, 16 },
    layers.Conv2DTranspose(16, 4, { strides = 2, padding = "same" }), layers.LeakyReLU(0.2),
    layers.Conv2DTranspose(8, 4, { strides = 2, padding = "same" }), layers.LeakyReLU(0.2),
    layers.Conv2D(1, 5, { padding = "same", activation = "sigmoid" }),
  }
  self.d_loss_tracker, self.g_loss_tracker = flow.metrics.Mean { name = "d_loss" }, flow.metrics.Mean { name = "g_loss" }
end

function GAN:metrics() return { self.d_loss_tracker, self.g_loss_tracker } end

function GAN:compile(d_optimizer, g_optimizer, loss_fn)
  flow.Model.compile(self)
  self.d_optimizer, self.g_optimizer, self.loss_fn = d_optimizer, g_optimizer, loss_fn
end

-- One update of one of the nets by a loss.
local function update(optimizer, net, loss_of)
  local tape = flow.GradientTape()
  local loss = tape:record(loss_of)
  optimizer:apply_gradients(tape:gradient(loss, net.trainable_weights), net.trainable_weights)
  return loss
end

function GAN:draw(rows) return self.generator(flow.random.normal { rows, LATENT }, { training = true }) end

function GAN:train_step(real)
  local rows = flow.shape(real)[1]
  local both = flow.concat({ self:draw(rows), real }, 1)
  local labels = flow.concat({ flow.ones { rows, 1 }, flow.zeros { rows, 1 } }, 1)
  labels = labels + 0.05 * flow.random.uniform(flow.shape(labels))
  local d_loss = update(self.d_optimizer, self.discriminator, function()
    return self.loss_fn(labels, self.discriminator(both, { training = true }))
  end)
  local g_loss = update(self.g_optimizer, self.generator, function()
    return self.loss_fn(flow.zeros { rows, 1 }, self.discriminator(self:draw(rows), { training = true }))
  end)
  self.d_loss_tracker:update_state(d_loss)
  self.g_loss_tracker:update_state(g_loss)
  return self:get_metrics_result()
end

local gan = GAN()
local function adam() return flow.optimizers.Adam { learning_rate = 0.001, beta_1 = 0.5 } end
gan:compile(adam(), adam(), flow.losses.BinaryCrossentropy { from_logits = true })
local ds = flow.data.Dataset.from_tensor_slices(pictures):shuffle(#x_train, { seed = options.seed }):batch(options.batch_size)
gan:fit(ds, { epochs = options.epochs, verbose = 2 })

local reader = flow.Sequential {
  layers.Input { 28, 28, 1 }, layers.Conv2D(16, 3, { activation = "relu" }), layers.MaxPooling2D(),
  layers.Conv2D(32, 3, { activation = "relu" }), layers.MaxPooling2D(), layers.Flatten(), layers.Dense(10, { activation = "softmax" }),
}
reader:compile { optimizer = "adam", loss = "sparse_categorical_crossentropy" }
reader:fit(pictures, y_train, { epochs = 12, verbose = 0 })
local drawn = gan.generator:predict(flow.random.normal({ 400, LATENT }, { seed = 2 }), { verbose = 0 })
local read = reader:predict(drawn, { verbose = 0 })
local seen, digits = {}, 0
for _, digit in ipairs(read:classes():totable()) do
  if not seen[digit] then digits = digits + 1 end
  seen[digit] = true
end
print(("400 pictures: %d digits, read with a confidence of %.2f"):format(digits, read:max(2):mean():item()))
