-- gan.lua: twelve steps of a small generative adversarial network, whose step updates the discriminator and then takes the generator's
-- gradient through the discriminator as it is now: two optimizers, and a sum over replicas after an update. It prints for each step the
-- losses of both, and at the end the sum of all numbers and a digest of their bits.
--
-- With --overlap the generator's optimizer trains a layer of the discriminator, too.
--
--   flowlua spec/dist/gan.lua [--devices 4] [--gpus 2] [--engine RING | MPI] [--optimizer Adam] [--twice] [--overlap]
local flow = require "flow"
local layers, distribute = flow.layers, flow.distribute

local options = flow.args { devices = 1, gpus = 0, engine = "", optimizer = "Adam", twice = false, overlap = false }
flow.set_random_seed(5)
flow.config.set_precision("exact")

local strategy
if options.engine ~= "" then
  strategy = distribute.MultiWorkerMirroredStrategy { communication_options = { implementation = options.engine } }
elseif options.gpus > 0 then
  local names = {}
  for i = 1, options.gpus do names[i] = ("gpu:%d"):format(i - 1) end
  strategy = distribute.MirroredStrategy { devices = names }
elseif options.devices > 1 then
  flow.config.set_logical_devices("cpu", options.devices)
  strategy = distribute.MirroredStrategy()
else
  strategy = distribute.get_strategy()
end

local BATCH = 22                                                  -- the last batch has 14 rows
local real = flow.random.normal({ 3 * BATCH + 14, 6 }, { seed = 1 }) + 2
local noise = flow.random.normal({ 3 * BATCH + 14, 4 }, { seed = 2 })

local generator, discriminator, of_generator, of_discriminator, count
strategy.scope(function()
  generator = flow.Sequential { layers.Input { 4 }, layers.Dense(8, { activation = "tanh" }), layers.Dense(6) }
  discriminator = flow.Sequential { layers.Input { 6 }, layers.Dense(7, { activation = "tanh" }), layers.Dense(1) }
  of_generator, of_discriminator = flow.optimizers[options.optimizer](0.02), flow.optimizers[options.optimizer](0.03)
  count = flow.Variable(0, { trainable = false })
end)
local crossentropy = flow.losses.BinaryCrossentropy { from_logits = true, reduction = "none" }

local function average(loss) return flow.nn.compute_average_loss(loss, { global_batch_size = BATCH }) end

local function update(optimizer, variables, f)
  local tape = flow.GradientTape()
  local loss = tape:record(f)
  optimizer:apply_gradients(tape:gradient(loss, variables), variables)
  return loss
end

-- The second layer of the discriminator and the generator, in this order: memory that the first update has as part of a whole.
local function variables_of_generator()
  local list = {}
  if options.overlap then list = { unpack(discriminator.layers[2].trainable_variables) } end
  for _, v in ipairs(generator.trainable_variables) do list[#list + 1] = v end
  return list
end

local function step(x, z)
  local function judge(data) return discriminator(data, { training = true }) end
  local made, loss_d, loss_g
  for _ = 1, options.twice and 2 or 1 do
    loss_d = update(of_discriminator, discriminator.trainable_variables, function()
      made = generator(z, { training = true })
      local yes, no = judge(x), judge(made)
      return average(crossentropy(flow.ones_like(yes), yes)) + average(crossentropy(flow.zeros_like(no), no))
    end)
    count:assign_add(1)
    loss_g = update(of_generator, variables_of_generator(), function()
      local no = judge(generator(z, { training = true })) * (count:value():to("float32") / count:value():to("float32"))
      return average(crossentropy(flow.ones_like(no), no))
    end)
  end
  return loss_d, loss_g
end

local function digest()
  local numbers = {}
  for _, model in ipairs { generator, discriminator } do
    for _, w in ipairs(model.weights) do numbers[#numbers + 1] = w:value():reshape { -1 } end
  end
  for _, optimizer in ipairs { of_generator, of_discriminator } do
    for _, v in ipairs(optimizer.variables) do numbers[#numbers + 1] = v:value():to("float32"):reshape { -1 } end
  end
  local all = flow.concat(numbers, 1)
  local bits = 0
  for i, number in ipairs(all:totable()) do bits = (bits * 31 + i * (number * 2 ^ 20 % 2 ^ 20)) % 2 ^ 40 end
  return all:abs():sum():item(), bits
end

local ds = strategy:experimental_distribute_dataset(flow.data.Dataset.from_tensor_slices({ real, noise }):batch(BATCH)
  :with_options { auto_shard_policy = "DATA" })
for _ = 1, 3 do
  for x, z in ds:iter() do
    local loss_d, loss_g = strategy:run(step, { x, z })
    print(("step %.9f %.9f"):format(strategy:reduce("sum", loss_d):item(), strategy:reduce("sum", loss_g):item()))
  end
end
local size, bits = digest()
print(("weights %.9f %.17g count %d"):format(size, bits, count:item()))
