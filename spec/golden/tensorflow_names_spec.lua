-- tensorflow_names_spec.lua: what TensorFlow has under a name (tensorflow_names.lua) is there under that name below flow, or the message
-- says where it is, what is written in its place, or why there is nothing of the kind.
-- flowlua spec/golden/tensorflow_names_spec.lua prints how many of them flow has.
local flow = require "flow"

local folder = debug.getinfo(1, "S").source:match("^@(.*)tensorflow_names_spec%.lua$")
local names = dofile(folder .. "tensorflow_names.lua")

-- flow.path.name, or nil and the message.
local function find(path, name)
  local value = flow
  for part in (path .. "." .. name):gmatch "[^.]+" do
    local ok, found = pcall(function() return value[part] end)
    if not ok then return nil, found end
    value = found
  end
  return value, "nil"
end

-- The number of names, of those that are there, and the list of those of which nothing is said.
local function count(path)
  local all, present, unknown = 0, 0, {}
  for name in names[path]:gmatch "%S+" do
    local value, message = find(path, name)
    all, present = all + 1, present + (value ~= nil and 1 or 0)
    if value == nil and not message:find '"[%w_]+": ' then unknown[#unknown + 1] = name end
  end
  return all, present, unknown
end

if not describe then
  for path in pairs(names) do
    local all, present, unknown = count(path)
    print(("tf.%-20s %3d of %3d   %s"):format(path, present, all, table.concat(unknown, " ")))
  end
  return
end

local support = require "spec.support.init"
describe("names of TensorFlow", function()
  for path in pairs(names) do
    it("are found, or a message says what is written in their place: tf." .. path, function()
      local all, _, unknown = count(path)
      assert.is_true(all > 0)
      assert.equal("", table.concat(unknown, " "))
    end)
  end

  it("are what is said of options of data sets, too, read and set", function()
    local options = flow.data.Options()
    for _, f in ipairs { function() options.threading.private_threadpool_size = 3 end, function() options.threading = 3 end } do
      assert.matches('has no .*"threading": ds:map%(f, { num_parallel_calls = n }%)', support.message_of(f))
    end
    assert.matches('has no "other"; it has', support.message_of(function() options.other = 1 end))
  end)

  it("say of complex numbers what stands for them", function()
    local function message(name) return support.message_of(function() return flow.keras.ops[name] end) end
    for _, name in ipairs { "eig", "polar", "view_as_complex", "view_as_real" } do
      assert.matches('has no "' .. name .. '": no dtype is complex', message(name), 1, true)
    end
    local parts = flow.unstack(flow.tensor { { 1, 2 }, { 3, 4 } }, nil, -1)      -- as the message says
    assert.same({ { 1, 3 }, { 2, 4 } }, { parts[1]:totable(), parts[2]:totable() })
    assert.same({ { 1, 2 }, { 3, 4 } }, flow.stack(parts, -1):totable())
  end)
end)
