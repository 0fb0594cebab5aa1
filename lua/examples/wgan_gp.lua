-- wgan_gp.lua: a critic and a generator, as in Keras' example "WGAN-GP": the loss of the critic has the gradient of what it says in it, a
-- tape in a tape.
--
--   flowlua lua/examples/wgan_gp.lua             the distance that the critic sees falls from 12.4 to 1.2 in 20 epochs
local flow = require "flow"
local layers = flow.layers

local here = arg[0]:match("^(.*/)[^/]*$") or "./"
local options = flow.args { epochs = 20, batch_size = 64, seed = 1, path = here .. "digits" }
flow.set_random_seed(options.seed)

local LATENT, CRITIC_STEPS, PENALTY = 32, 3, 10
local pictures = flow.datasets.mnist({ path = options.path }):to("float32"):reshape { -1, 784 } / 255

local WGAN = flow.Model:extend "WGAN"

function WGAN:init()
  self.critic = flow.Sequential {
    layers.Input { 784 }, layers.Dense(128), layers.LeakyReLU(0.2), layers.Dense(64), layers.LeakyReLU(0.2), layers.Dense(1),
  }
  self.generator = flow.Sequential {
    layers.Input { LATENT }, layers.Dense(128), layers.LeakyReLU(0.2), layers.Dense(784, { activation = "sigmoid" }),
  }
end

function WGAN:compile(d_optimizer, g_optimizer)
  flow.Model.compile(self)
  self.d_optimizer, self.g_optimizer = d_optimizer, g_optimizer
  self.distance_tracker = flow.metrics.Mean { name = "distance" }
end

function WGAN:metrics() return { self.distance_tracker } end

-- How far the critic's gradient is from the length 1 between real and drawn pictures.
function WGAN:gradient_penalty(real, drawn)
  local mixed = real + flow.random.uniform { flow.shape(real)[1], 1 } * (drawn - real)
  local tape = flow.GradientTape()
  tape:watch(mixed)
  local judged = tape:record(function() return self.critic(mixed, { training = true }) end)
  local length = (tape:gradient(judged, mixed):square():sum(2) + 1e-12):sqrt()
  return (length - 1):square():mean()
end

function WGAN:train_step(real)
  local function draw() return self.generator(flow.random.normal { flow.shape(real)[1], LATENT }, { training = true }) end
  local function judge(x) return self.critic(x, { training = true }):mean() end
  local function update(optimizer, net, loss_of)
    local tape = flow.GradientTape()
    local loss = tape:record(loss_of)
    optimizer:apply_gradients(tape:gradient(loss, net.trainable_weights), net.trainable_weights)
  end
  local distance
  for _ = 1, CRITIC_STEPS do
    update(self.d_optimizer, self.critic, function()
      local drawn = draw()
      distance = judge(real) - judge(drawn)
      return PENALTY * self:gradient_penalty(real, drawn) - distance
    end)
  end
  update(self.g_optimizer, self.generator, function() return -judge(draw()) end)
  self.distance_tracker:update_state(distance)
  return { distance = self.distance_tracker:result() }
end

local wgan = WGAN()
local function adam() return flow.optimizers.Adam { learning_rate = 0.0005, beta_1 = 0.5, beta_2 = 0.9 } end
wgan:compile(adam(), adam())
local ds = flow.data.Dataset.from_tensor_slices(pictures):shuffle(#pictures, { seed = options.seed }):batch(options.batch_size)
local distances = wgan:fit(ds, { epochs = options.epochs, verbose = 2 }).history.distance
print(("distance %.2f at most, %.2f in the last epoch"):format(math.max(unpack(distances)), distances[#distances]))
