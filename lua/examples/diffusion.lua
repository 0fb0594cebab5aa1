-- diffusion.lua: handwritten digits out of noise, as in Keras' example "Denoising Diffusion Implicit Models": a U-Net learns to tell the
-- noise in a picture from the picture; a moving average of its weights then takes the noise away, a little in each step.
--
--   flowlua lua/examples/diffusion.lua --save digits.png     the error of the noise in test pictures falls from 0.77 to 0.13 in 12 epochs
local flow = require "flow"
local layers = flow.layers

local here = arg[0]:match("^(.*/)[^/]*$") or "./"
local options = flow.args { epochs = 12, batch_size = 64, steps = 20, seed = 1, path = here .. "digits", save = "" }
flow.set_random_seed(options.seed)

local SIZE, WIDTHS, DEPTH = 28, { 16, 32, 48 }, 2
local FREQUENCIES, HIGHEST = 8, 1000      -- of the sines that tell the net how much noise there is
local LEAST_SIGNAL, MOST_SIGNAL = 0.02, 0.95
local AVERAGE = 0.95

---- the net ---------------------------------------------------------------------------------------------------------------------

-- Sines and cosines of the variance of the noise, {batch, 1, 1, 1}.
local function sines(x)
  local speeds = 2 * math.pi * flow.exp(flow.linspace(0, math.log(HIGHEST), FREQUENCIES))
  return flow.concat({ flow.sin(speeds * x), flow.cos(speeds * x) }, -1)
end

local function residual_block(x, width)
  local residual = x.shape[-1] == width and x or layers.Conv2D(width, 1)(x)
  x = layers.BatchNormalization { center = false, scale = false }(x)
  x = layers.Conv2D(width, 3, { padding = "same", activation = "swish" })(x)
  return layers.Conv2D(width, 3, { padding = "same" })(x) + residual
end

local function new_net()
  local noisy, variance = flow.Input { SIZE, SIZE, 1 }, flow.Input { 1, 1, 1 }
  local told = layers.UpSampling2D { size = SIZE, interpolation = "nearest" }(layers.Lambda(sines)(variance))
  local x, skips = layers.Concatenate()({ layers.Conv2D(WIDTHS[1], 1)(noisy), told }), {}
  for i = 1, #WIDTHS - 1 do
    for _ = 1, DEPTH do
      x = residual_block(x, WIDTHS[i])
      skips[#skips + 1] = x
    end
    x = layers.AveragePooling2D(2)(x)
  end
  for _ = 1, DEPTH do x = residual_block(x, WIDTHS[#WIDTHS]) end
  for i = #WIDTHS - 1, 1, -1 do
    x = layers.UpSampling2D { size = 2, interpolation = "bilinear" }(x)
    for _ = 1, DEPTH do x = residual_block(layers.Concatenate()({ x, table.remove(skips) }), WIDTHS[i]) end
  end
  return flow.Model({ noisy, variance }, layers.Conv2D(1, 1, { kernel_initializer = "zeros" })(x))
end

---- the model -------------------------------------------------------------------------------------------------------------------

local Diffusion = flow.Model:extend "Diffusion"
function Diffusion:init()
  self.normalizer = layers.Normalization { axis = false }
  self.net = new_net()
  self.average = flow.models.clone_model(self.net)      -- of its weights over the steps, which draws pictures
  self.noise_tracker = flow.metrics.Mean { name = "noise_loss" }
  self.picture_tracker = flow.metrics.Mean { name = "picture_loss" }
end

function Diffusion:metrics() return { self.noise_tracker, self.picture_tracker } end

-- How much of a picture at times from 0 to 1 is noise, and how much is signal: the squares of both add up to 1.
local function rates(times)
  local first, last = math.acos(MOST_SIGNAL), math.acos(LEAST_SIGNAL)
  local angles = first + times * (last - first)
  return flow.sin(angles), flow.cos(angles)
end

-- The noise in noisy pictures, and the pictures without it.
local function separate(net, noisy, noise_rates, signal_rates, training)
  local noise = net({ noisy, noise_rates ^ 2 }, { training = training })
  return noise, (noisy - noise_rates * noise) / signal_rates
end

-- The losses of both for a batch of pictures, each with noise of its own and at a time of its own.
function Diffusion:losses_of(pictures, net, training)
  pictures = self.normalizer(pictures)
  local rows = flow.shape(pictures)[1]
  local noise = flow.random.normal { rows, SIZE, SIZE, 1 }
  local noise_rates, signal_rates = rates(flow.random.uniform { rows, 1, 1, 1 })
  local noisy = signal_rates * pictures + noise_rates * noise
  local found_noise, found = separate(net, noisy, noise_rates, signal_rates, training)
  return self.loss(noise, found_noise), self.loss(pictures, found)
end

function Diffusion:note(noise_loss, picture_loss)
  self.noise_tracker:update_state(noise_loss)
  self.picture_tracker:update_state(picture_loss)
  return self:get_metrics_result()
end

function Diffusion:train_step(pictures)
  local tape = flow.GradientTape()
  local noise_loss, picture_loss = tape:record(function() return self:losses_of(pictures, self.net, true) end)
  self.optimizer:apply_gradients(tape:gradient(noise_loss, self.net.trainable_weights), self.net.trainable_weights)
  for i, weight in ipairs(self.net.weights) do
    local averaged = self.average.weights[i]
    averaged:assign(AVERAGE * averaged + (1 - AVERAGE) * weight)
  end
  return self:note(noise_loss, picture_loss)
end

function Diffusion:test_step(pictures) return self:note(self:losses_of(pictures, self.average, false)) end

-- Pictures out of noise: in each step the noise that is found makes place for less noise.
function Diffusion:generate(count, steps)
  local draw = flow.fn(function(noisy, time, next_time)
    local noise_rates, signal_rates = rates(time)
    local noise, pictures = separate(self.average, noisy, noise_rates, signal_rates, false)
    local next_noise_rates, next_signal_rates = rates(next_time)
    return next_signal_rates * pictures + next_noise_rates * noise, pictures
  end)
  local noisy, pictures = flow.random.normal { count, SIZE, SIZE, 1 }, nil
  for step = 0, steps - 1 do
    local time, next_time = 1 - step / steps, 1 - (step + 1) / steps
    noisy, pictures = draw(noisy, flow.full({ count, 1, 1, 1 }, time), flow.full({ count, 1, 1, 1 }, next_time))
  end
  return (self.normalizer.mean + pictures * flow.sqrt(self.normalizer.variance)):clip(0, 1)
end

---- training --------------------------------------------------------------------------------------------------------------------

local x_train, _, x_test = flow.datasets.mnist { path = options.path }
local function batches(x)
  return flow.data.Dataset.from_tensor_slices(x:to("float32"):reshape { -1, SIZE, SIZE, 1 } / 255):batch(options.batch_size)
end

local model = Diffusion()
model.normalizer:adapt(x_train:to("float32"):reshape { -1, SIZE, SIZE, 1 } / 255)
model:compile { optimizer = flow.optimizers.AdamW { learning_rate = 2e-3, weight_decay = 1e-4 }, loss = flow.losses.mean_absolute_error }
local shuffled = batches(x_train):unbatch():shuffle(#x_train, { seed = options.seed }):batch(options.batch_size)
local history = model:fit(shuffled, { epochs = options.epochs, validation_data = batches(x_test), verbose = 2 }).history
print(("error of the noise in test pictures %.3f in the first epoch, %.3f in the last"):format(history.val_noise_loss[1],
  history.val_noise_loss[-1]))
local drawn = model:generate(24, options.steps)
print(("24 pictures, %.1f %% of their pixels are ink, of the digits %.1f %%"):format(100 * drawn:gt(0.5):to("float32"):mean():item(),
  100 * (x_test:to("float32") / 255):gt(0.5):to("float32"):mean():item()))
if options.save ~= "" then flow.plot.images(drawn, options.save, { columns = 8 }) end
