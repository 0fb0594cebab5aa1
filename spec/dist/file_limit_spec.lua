-- file_limit_spec.lua: where a file may not become as large as what is saved (RLIMIT_FSIZE), saving fails with a sentence, on all workers
-- and in hosts that know nothing of the signal; no process is killed, the old file stays, and nothing else is left.
local clusters = require "spec.support.clusters"
local support = require "spec.support.init"

local SCRIPT = [[
  local flow = require "flow"
  local layers = flow.layers
  local folder = ...
  local strategy = flow.distribute.MultiWorkerMirroredStrategy()
  local model = strategy.scope(function()
    local made = flow.Sequential { layers.Input { 200 }, layers.Dense(200), layers.Dense(1) }
    made:compile { optimizer = "adam", loss = "mse" }
    return made
  end)
  local function saves(name) return { flow.callbacks.ModelCheckpoint(folder .. "/" .. name) } end
  local function say(ok, problem) print("=", tostring(ok), ok and "" or (problem:find "File too large" and "too large" or problem)) end
  say(pcall(model.save, model, folder .. "/kept.keras"))
  say(pcall(model.save_weights, model, folder .. "/new.weights.h5"))
  say(pcall(model.fit, model, flow.ones { 4, 200 }, flow.ones { 4, 1 }, { verbose = 0, callbacks = saves "epoch.keras" }))
  print("=", "goes on")]]

-- A folder with an old file.
local function make_folder()
  local folder = support.folder()
  local file = assert(io.open(folder .. "/kept.keras", "wb"))
  file:write("old")
  file:close()
  return folder
end

-- What is in the folder in the end.
local function contents(folder)
  return support.run(("cat %s/kept.keras; ls %s; rm -r %s"):format(folder, folder, folder)):gsub("\n", " ")
end

local WANTED = { "false\ttoo large", "false\ttoo large", "false\ttoo large", "goes on" }

describe("a file that may not become larger", function()
  it("is an error on two workers that save", function()
    local folder = make_folder()
    local said, output, code = clusters.launch(SCRIPT, { begin = "", arguments = folder, launch = "--kill-after 1",
                                                         environment = "ulimit -f 64;" })
    assert.equal(0, code, output)
    for worker = 0, 1 do assert.same(WANTED, said[worker], output) end
    assert.equal("oldkept.keras ", contents(folder))
  end)

  it("is one in luajit, whose other threads and signals stay unchanged", function()
    if os.getenv "FLOW_SANITIZED" then return pending("plain luajit cannot load a build with sanitizers") end
    local folder = make_folder()
    local output, code = support.run(("ulimit -f 64; FLOW_THREADS=2 timeout -k 5 60 luajit %s %s"):format(
      support.file("saves.lua", SCRIPT), folder))
    assert.equal(0, code, output)
    local said = {}
    for text in output:gmatch("=\t([^\n]*)") do said[#said + 1] = text end
    assert.same(WANTED, said, output)
    assert.equal("oldkept.keras ", contents(folder))
  end)

  it("is one for what a script writes itself with flowlua", function()
    local output, code = support.run(("ulimit -f 8; timeout -k 5 60 env %s %s"):format(support.command, support.file("own.lua", [[
      local path = arg[0] .. ".large"
      local file = io.open(path, "wb")
      file:setvbuf("no")
      print("=", file:write(("x"):rep(100000)))]])))
    assert.equal(0, code, output)
    assert.truthy(output:find("=\tnil\tFile too large", 1, true), output)
  end)
end)
