-- dqn.lua: a net learns to play a small game from what it wins and loses, as in Keras' example "Deep Q-Learning for Atari Breakout": a
-- loop with a memory of what happened, a second net that changes rarely, and a tape. The game is played here, too: a ball falls
-- through a field, bounces off its walls, and a board at the bottom has to be there.
--
--   flowlua lua/examples/dqn.lua                   the mean reward of 100 games rises from -0.64 to 0.86
local flow = require "flow"
local layers = flow.layers

local options = flow.args { episodes = 700, seed = 1 }
flow.set_random_seed(options.seed)
math.randomseed(options.seed)

---- the game -------------------------------------------------------------------------------------------------------------------

local WIDTH, HEIGHT = 7, 8
local env = {}

-- The field {height, width, 2}: where the ball is and where it was, with the board in the last row of both.
function env.observe(self)
  local field = {}
  for row = 1, HEIGHT do
    field[row] = {}
    for column = 1, WIDTH do
      local board = row == HEIGHT and math.abs(column - self.board) < 1 and 1 or 0
      field[row][column] = { row == self.row and column == self.column and 1 or board,
                             row == self.row - 1 and column == self.before and 1 or board }
    end
  end
  return field
end

function env.reset(self)
  self.row, self.column, self.board = 1, math.random(WIDTH), math.random(WIDTH)
  self.before, self.speed = self.column, math.random(-1, 1)
  return self:observe()
end

-- Actions: 0 left, 1 stay, 2 right. Returns the next field, the reward and whether the game is over.
function env.step(self, action)
  self.board = math.max(1, math.min(WIDTH, self.board + action - 1))
  self.before = self.column
  if self.column + self.speed < 1 or self.column + self.speed > WIDTH then self.speed = -self.speed end
  self.row, self.column = self.row + 1, self.column + self.speed
  local done = self.row == HEIGHT
  return self:observe(), done and (self.board == self.column and 1 or -1) or 0, done
end

---- the nets -------------------------------------------------------------------------------------------------------------------

local NUM_ACTIONS = 3
local function create_q_model()
  return flow.Sequential {
    layers.Input { HEIGHT, WIDTH, 2 },
    layers.Conv2D(16, 3, { activation = "relu", padding = "same" }),
    layers.Flatten(),
    layers.Dense(64, { activation = "relu" }),
    layers.Dense(NUM_ACTIONS, { activation = "linear" }),
  }
end
local model, model_target = create_q_model(), create_q_model()
model_target:set_weights(model:get_weights())

local optimizer = flow.optimizers.Adam { learning_rate = 0.001, clipnorm = 1 }
local loss_function = flow.losses.Huber()

local gamma, batch_size, update_after_actions, update_target_network = 0.95, 32, 2, 200
local epsilon, epsilon_min, epsilon_step = 1, 0.05, 1 / 2000
local max_memory_length = 5000

local function best_action(state)
  local action_values = model(flow.tensor { state }, { training = false })
  return action_values[1]:argmax():item() - 1
end

local train = flow.fn(function(states, updated_q_values, masks)
  local tape = flow.GradientTape()
  local loss = tape:record(function()
    local q_values = model(states, { training = true })
    local q_action = (q_values * masks):sum(2)
    return loss_function(updated_q_values, q_action)
  end)
  optimizer:apply_gradients(tape:gradient(loss, model.trainable_variables), model.trainable_variables)
  return loss
end)

local function sample(memory)
  local states, next_states, rewards, actions, done = {}, {}, {}, {}, {}
  for i = 1, batch_size do
    local event = memory[math.random(#memory)]
    states[i], next_states[i], rewards[i], actions[i], done[i] = unpack(event)
  end
  return flow.tensor(states), flow.tensor(next_states), flow.tensor(rewards), flow.tensor(actions, { dtype = "int32" }), flow.tensor(done)
end

---- training -------------------------------------------------------------------------------------------------------------------

local memory, oldest, frame_count = {}, 1, 0

local function remember(event)
  memory[oldest] = event
  oldest = oldest % max_memory_length + 1
end

local function play(is_learning)
  local state = env:reset()
  local reward, done
  repeat
    local action
    if is_learning and epsilon > math.random() then action = math.random(0, NUM_ACTIONS - 1) else action = best_action(state) end
    local state_next
    state_next, reward, done = env:step(action)
    if is_learning then
      frame_count, epsilon = frame_count + 1, math.max(epsilon - epsilon_step, epsilon_min)
      remember { state, state_next, reward, action, done and 1 or 0 }
      if frame_count % update_after_actions == 0 and #memory > batch_size then
        local states, next_states, rewards, actions, ended = sample(memory)
        local future_rewards = model_target:predict(next_states, { verbose = 0 })
        local updated_q_values = rewards + gamma * flow.max(future_rewards, 2) * (1 - ended)
        train(states, updated_q_values, flow.one_hot(actions, NUM_ACTIONS))
      end
      if frame_count % update_target_network == 0 then model_target:set_weights(model:get_weights()) end
    end
    state = state_next
  until done
  return reward
end

local function mean_reward(games)
  local sum = 0
  for _ = 1, games do sum = sum + play(false) end
  return sum / games
end

local before = mean_reward(100)
local running_reward = 0
for episode = 1, options.episodes do
  running_reward = 0.98 * running_reward + 0.02 * play(true)
  if episode % 100 == 0 then
    print(("running reward: %.2f at episode %d, frame count %d"):format(running_reward, episode, frame_count))
  end
end
print(("mean reward of 100 games: %.2f before, %.2f after"):format(before, mean_reward(100)))
