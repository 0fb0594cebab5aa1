-- dcgan.lua: a net draws faces, as in Keras' example "DCGAN to generate face images": two nets, a train_step, and a callback that saves
-- pictures. The faces that it learns from are drawn here: heads in several colours, eyes, and mouths in all moods.
--
--   flowlua lua/examples/dcgan.lua                 the deviation of pixels is off by 0.061, 0.115 before
local flow = require "flow"
local layers = flow.layers

local options = flow.args { epochs = 15, faces = 1000, batch_size = 32, seed = 1, folder = "" }
flow.set_random_seed(options.seed)
math.randomseed(options.seed)

local SIZE, LATENT = 32, 64

---- faces ----------------------------------------------------------------------------------------------------------------------

local x_axis, y_axis = flow.arange(SIZE):to("float32"):reshape { 1, SIZE }, flow.arange(SIZE):to("float32"):reshape { SIZE, 1 }
local function between(low, high) return low + (high - low) * math.random() end

local function draw_face()
  local function colour(r, g, b) return flow.tensor { { { r, g, b } } } end
  local x, y, size = between(14, 18), between(14, 18), between(9, 12)
  local picture = flow.broadcast_to(colour(between(0, 0.3), between(0.2, 0.6), between(0.4, 0.8)), { SIZE, SIZE, 3 })
  local function paint(distance, paint_colour)
    local inside = flow.sigmoid((1 - distance) * 6):expand_dims(-1)
    picture = picture + inside * (paint_colour - picture)
  end
  local function disc(dx, dy, width, height)
    return ((x_axis - x - dx) / width):square() + ((y_axis - y - dy) / height):square()
  end
  local skin = between(0.4, 0.95)
  paint(disc(0, 0, size, size * between(1, 1.2)), colour(skin, skin * 0.8, skin * 0.65))
  for side = -1, 1, 2 do paint(disc(side * size * 0.4, -size * 0.25, size * 0.14, size * 0.14), colour(0.1, 0.1, 0.15)) end
  local smile = between(-0.03, 0.06)      -- the mouth is a parabola
  local dx = (x_axis - x)
  local curve = (y_axis - y - size * 0.45 + smile * dx:square()):abs() / 1.2
  paint(flow.maximum(curve, dx:abs() / (size * 0.45)), colour(0.7, 0.15, 0.2))
  return picture
end

local faces = {}
for i = 1, options.faces do faces[i] = draw_face() end
faces = flow.stack(faces, 1)
local dataset = flow.data.Dataset.from_tensor_slices(faces):shuffle(options.faces, { seed = options.seed }):batch(options.batch_size)

---- the nets -------------------------------------------------------------------------------------------------------------------

local discriminator = flow.Sequential({
  flow.Input { SIZE, SIZE, 3 },
  layers.Conv2D(16, { kernel_size = 4, strides = 2, padding = "same" }), layers.LeakyReLU { negative_slope = 0.2 },
  layers.Conv2D(32, { kernel_size = 4, strides = 2, padding = "same" }), layers.LeakyReLU { negative_slope = 0.2 },
  layers.Conv2D(32, { kernel_size = 4, strides = 2, padding = "same" }), layers.LeakyReLU { negative_slope = 0.2 },
  layers.Flatten(), layers.Dropout(0.2), layers.Dense(1, { activation = "sigmoid" }),
}, { name = "discriminator" })

local generator = flow.Sequential({
  flow.Input { LATENT },
  layers.Dense(4 * 4 * 32), layers.Reshape { 4, 4, 32 },
  layers.Conv2DTranspose(32, { kernel_size = 4, strides = 2, padding = "same" }), layers.LeakyReLU { negative_slope = 0.2 },
  layers.Conv2DTranspose(32, { kernel_size = 4, strides = 2, padding = "same" }), layers.LeakyReLU { negative_slope = 0.2 },
  layers.Conv2DTranspose(16, { kernel_size = 4, strides = 2, padding = "same" }), layers.LeakyReLU { negative_slope = 0.2 },
  layers.Conv2D(3, { kernel_size = 5, padding = "same", activation = "sigmoid" }),
}, { name = "generator" })

local GAN = flow.Model:extend "GAN"

function GAN:init(given)
  self.discriminator, self.generator, self.latent_dim = given.discriminator, given.generator, given.latent_dim
end

function GAN:compile(d_optimizer, g_optimizer, loss_fn)
  flow.Model.compile(self)
  self.d_optimizer, self.g_optimizer, self.loss_fn = d_optimizer, g_optimizer, loss_fn
  self.d_loss_metric, self.g_loss_metric = flow.metrics.Mean { name = "d_loss" }, flow.metrics.Mean { name = "g_loss" }
end

function GAN:metrics() return { self.d_loss_metric, self.g_loss_metric } end

function GAN:train_step(real_images)
  -- Pictures out of random points, together with real ones.
  local batch_size = flow.shape(real_images)[1]
  local random_latent_vectors = flow.random.normal { batch_size, self.latent_dim }
  local generated_images = self.generator(random_latent_vectors)
  local combined_images = flow.concat({ generated_images, real_images }, 1)
  local labels = flow.concat({ flow.ones { batch_size, 1 }, flow.zeros { batch_size, 1 } }, 1)
  labels = labels + 0.05 * flow.random.uniform(flow.shape(labels))      -- noise: an important trick

  local tape = flow.GradientTape()
  local d_loss = tape:record(function() return self.loss_fn(labels, self.discriminator(combined_images)) end)
  local grads = tape:gradient(d_loss, self.discriminator.trainable_weights)
  self.d_optimizer:apply_gradients(grads, self.discriminator.trainable_weights)

  -- The generator learns from labels that say that all its pictures are real; the discriminator does not change.
  random_latent_vectors = flow.random.normal { batch_size, self.latent_dim }
  local misleading_labels = flow.zeros { batch_size, 1 }
  local g_loss = tape:record(function()
    return self.loss_fn(misleading_labels, self.discriminator(self.generator(random_latent_vectors)))
  end)
  grads = tape:gradient(g_loss, self.generator.trainable_weights)
  self.g_optimizer:apply_gradients(grads, self.generator.trainable_weights)

  self.d_loss_metric:update_state(d_loss)
  self.g_loss_metric:update_state(g_loss)
  return { d_loss = self.d_loss_metric:result(), g_loss = self.g_loss_metric:result() }
end

local GANMonitor = flow.callbacks.Callback:extend "GANMonitor"

function GANMonitor:init(folder, num_img) self.folder, self.num_img = folder, num_img end

function GANMonitor:on_epoch_end(epoch)
  local generated_images = self.model.generator(flow.random.normal { self.num_img, self.model.latent_dim }) * 255
  for i = 1, self.num_img do
    flow.image.save(flow.io.join(self.folder, ("generated_img_%03d_%d.png"):format(epoch, i)), generated_images[i])
  end
end

local gan = GAN { discriminator = discriminator, generator = generator, latent_dim = LATENT }
gan:compile(flow.optimizers.Adam { learning_rate = 0.0005, beta_1 = 0.5 }, flow.optimizers.Adam { learning_rate = 0.0005, beta_1 = 0.5 },
  flow.losses.BinaryCrossentropy())

-- How far the mean of drawn pictures is from that of faces, pixel by pixel, and their deviations.
local function distances()
  local drawn = generator:predict(flow.random.normal { 256, LATENT }, { verbose = 0 })
  return (drawn:mean(1) - faces:mean(1)):abs():mean():item(), (drawn:std(1) - faces:std(1)):abs():mean():item()
end

local mean_before, std_before = distances()
gan:fit(dataset, { epochs = options.epochs, verbose = 2, callbacks = options.folder ~= "" and { GANMonitor(options.folder, 10) } or {} })
local mean, std = distances()
print(("mean picture off by %.3f, deviation by %.3f; %.3f and %.3f before"):format(mean, std, mean_before, std_before))
