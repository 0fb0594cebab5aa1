-- callback_paths_spec.lua: callbacks that write files say before the first epoch that they cannot.
local support = require "spec.support.init"
local flow = require "flow"
local callbacks = flow.callbacks

describe("callbacks that write", function()
  local folder
  setup(function()
    folder = support.folder()
    support.write(folder .. "/file", "")
    os.execute("mkdir " .. folder .. "/folder.keras")
  end)
  teardown(function() os.execute("rm -rf " .. folder) end)

  -- The message of a fit with the callback, and how many epochs began before it.
  local function message_of(make)
    local model = flow.Sequential { flow.layers.Input { 2 }, flow.layers.Dense(1) }
    model:compile { optimizer = "sgd", loss = "mse" }
    local begun = 0
    local counter = callbacks.LambdaCallback { on_epoch_begin = function() begun = begun + 1 end }
    local message = support.message_of(function()
      model:fit(flow.ones { 4, 2 }, flow.ones { 4, 1 }, { verbose = 0, callbacks = { counter, make() } })
    end)
    return message, begun
  end

  it("refuse a path below a file, and a folder in place of a file, before the first epoch", function()
    local file = folder .. "/file"
    for name, make in pairs {
      ModelCheckpoint = function() return callbacks.ModelCheckpoint(file .. "/a/m.keras") end,
      ["ModelCheckpoint "] = function() return callbacks.ModelCheckpoint(file .. "/{epoch:02d}/m.keras") end,
      TensorBoard = function() return callbacks.TensorBoard(file .. "/logs", { write_graph = false }) end,
      CSVLogger = function() return callbacks.CSVLogger(file .. "/a/log.csv") end,
      BackupAndRestore = function() return callbacks.BackupAndRestore(file .. "/backup") end,
    } do
      local message, begun = message_of(make)
      assert.truthy(message:find("^" .. name:gsub(" ", "") .. ": cannot write [^\n]*: " .. file .. " is not a folder$"), message)
      assert.equal(0, begun)
    end
    local message, begun = message_of(function() return callbacks.ModelCheckpoint(folder .. "/folder.keras") end)
    assert.equal(("ModelCheckpoint: cannot write %s/folder.keras: it is a folder; the path is that of a file"):format(folder), message)
    assert.equal(0, begun)
    message, begun = message_of(function() return callbacks.ModelCheckpoint("/proc/m.keras") end)
    assert.truthy(message:find("^ModelCheckpoint: cannot write /proc/m.keras: "), message)
    assert.equal(0, begun)
  end)

  it("make folders that do not exist yet, and leave nothing else there", function()
    local model = flow.Sequential { flow.layers.Input { 2 }, flow.layers.Dense(1) }
    model:compile { optimizer = "sgd", loss = "mse" }
    model:fit(flow.ones { 4, 2 }, flow.ones { 4, 1 }, { verbose = 0, callbacks = {
      callbacks.ModelCheckpoint(folder .. "/new/{epoch:02d}/m.keras"), callbacks.CSVLogger(folder .. "/new/log/a.csv"),
      callbacks.BackupAndRestore(folder .. "/new/backup") } })
    assert.equal("01\n01/m.keras\nlog\nlog/a.csv\n", (support.run(("cd %s/new && find * | grep -v backup | sort"):format(folder))))
  end)

  it("know at once a template that nothing can fill", function()
    for template, message in pairs {
      ["m-{epoch:02q}.keras"] = 'a whole number has no format of type "q"',
      ["m-{val_loss:02d}.keras"] = 'a float has no format of type "d"',
      ["m-{epoch:,x}.keras"] = 'the type "x" does not go with the grouping ","',
      ["m-{val_loss:_n}.keras"] = 'the type "n" does not go with the grouping "_"',
      ["m-{epoch.keras"] = "a { has no }",
      ["m-{0}.keras"] = "{0} is not a name",
    } do
      local found = support.message_of(function() callbacks.ModelCheckpoint(template) end)
      assert.truthy(found:find(('^ModelCheckpoint: "%s": '):format(template:gsub("%p", "%%%0"))) and found:find(message, 1, true), found)
    end
    callbacks.ModelCheckpoint "m-{epoch:02d}-{val_loss:.2f}-{{x}}.keras"
  end)
end)
