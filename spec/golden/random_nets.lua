-- random_nets.lua: for random_nets.py writes random models (spec/support/random_nets.lua) to a folder, and reads those that Keras writes.
--   flowlua random_nets.lua write FOLDER 1,2,3    FOLDER/SEED.keras with SEED_x1.npy, SEED_t1.npy (targets), SEED_y1.npy (predictions),
--                                                 SEED_loss.npy (of five steps), SEED_z1.npy (predictions after them)
--   flowlua random_nets.lua read FOLDER 1,2,3     of FOLDER/SEED_keras.keras: SEED_read_y1.npy, SEED_read_loss.npy, SEED_read_z1.npy
-- Where something fails, SEED_error.txt or SEED_read_error.txt says why.
local flow = require "flow"
local random_nets = require "spec.support.random_nets"

local STEPS = 5
local what, folder, seeds = arg[1], arg[2], arg[3]
assert(what == "write" or what == "read", "usage: flowlua random_nets.lua write|read FOLDER SEEDS")

local function one_or_list(list) return #list == 1 and list[1] or list end
local function listed(outputs) return flow.is_tensor(outputs) and { outputs } or outputs end

local function save_all(stem, list)
  for i, t in ipairs(list) do
    if t.dtype ~= "string" then flow.save_npy(("%s%d.npy"):format(stem, i), t) end
  end
end

local function write_text(path, text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

local function exists(path)
  local file = io.open(path)
  if file then file:close() end
  return file ~= nil
end

--- Predictions, the losses of some steps, predictions after them.
local function try(model, stem, x, y, trains)
  save_all(stem .. "y", listed(model:predict(x, { verbose = 0 })))
  if not trains then return end
  local losses = {}
  for step = 1, STEPS do losses[step] = model:train_on_batch(x, y).loss end
  flow.save_npy(stem .. "loss.npy", flow.tensor(losses))
  save_all(stem .. "z", listed(model:predict(x, { verbose = 0 })))
end

--- Strings go as lines, one tensor a file.
local function strings_of(t)
  local list = {}
  local function walk(part)
    if type(part) == "table" then for _, inner in ipairs(part) do walk(inner) end else list[#list + 1] = part end
  end
  walk(t:totable())
  return table.concat(t.shape, " ") .. "\n" .. table.concat(list, "\n") .. "\n"
end

local function write(seed, stem)
  local made = random_nets.make(seed)
  local model = made.model
  local kind = (made.lora and " LoRA" or "") .. (made.quantized and " int8" or "")
  write_text(stem .. ".txt", ("%s\t%s\t%s"):format(made.class, made.optimizer, table.concat(made.classes, " ") .. kind))
  model:save(stem .. ".keras")
  if made.lora then model = flow.load_model(stem .. ".keras") end      -- as in Keras, files hold the sum, and the change begins with zeros
  for i, t in ipairs(made.inputs) do
    if t.dtype == "string" then write_text(("%s_s%d.txt"):format(stem, i), strings_of(t)) end
  end
  save_all(stem .. "_x", made.inputs)
  save_all(stem .. "_t", made.targets)
  try(model, stem .. "_", one_or_list(made.inputs), one_or_list(made.targets), made.trains)
end

local function read(seed, stem)
  if not exists(stem .. "_keras.keras") then return end
  local made = random_nets.make(seed)
  try(flow.load_model(stem .. "_keras.keras"), stem .. "_read_", one_or_list(made.inputs), one_or_list(made.targets), made.trains)
end

for text in seeds:gmatch "%d+" do
  local seed = tonumber(text)
  local stem = ("%s/%d"):format(folder, seed)
  local ok, problem = pcall(what == "write" and write or read, seed, stem)
  if not ok then write_text(stem .. (what == "read" and "_read" or "") .. "_error.txt", tostring(problem)) end
  if seed % 10 == 0 then collectgarbage() end
end
