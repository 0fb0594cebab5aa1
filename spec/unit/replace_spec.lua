-- replace_spec.lua: what saving over a file leaves as it was: mode, owner, symbolic links; and what cannot be written over is refused.
local flow = require "flow"
local support = require "spec.support.init"

local folder

local function run(command)
  return (support.run(("cd %q && { %s; } 2>&1"):format(folder, command)):gsub("%s+$", ""))
end

local function model_of()
  local model = flow.Sequential { flow.layers.Input { 2 }, flow.layers.Dense(1) }
  model:compile { optimizer = "sgd", loss = "mse" }
  return model
end

-- Each writes a file: ending, and how.
local writers = {
  { "keras", function(path) model_of():save(path) end },
  { "weights.h5", function(path) model_of():save_weights(path) end },
  { "safetensors", function(path) model_of():save_weights(path) end },
  { "npy", function(path) flow.save_npy(path, flow.ones { 3 }) end },
  { "onnx", function(path) model_of():export(path) end },
  { "txt", function(path) flow.io.write(path, "text") end },
}

describe("saving over a file", function()
  before_each(function()
    folder = support.file("folder", ""):match("^(.*)/") .. "/replace"
    os.execute(("rm -rf %q && mkdir -p %q/real"):format(folder, folder))
  end)
  after_each(function() os.execute(("rm -rf %q"):format(folder)) end)

  for _, writer in ipairs(writers) do
    local ending, write = writer[1], writer[2]

    it("keeps its mode: " .. ending, function()
      local path = folder .. "/file." .. ending
      for _, mode in ipairs { "640", "600", "664", "755" } do
        run(("echo old > file.%s && chmod %s file.%s"):format(ending, mode, ending))
        write(path)
        assert.equal(mode, run("stat -c %a file." .. ending))
        assert.not_equal("old", run("cat file." .. ending))
      end
    end)

    it("writes through a symbolic link: " .. ending, function()
      run(("echo old > real/file.%s && chmod 640 real/file.%s"):format(ending, ending))
      run(("ln -s real/file.%s second.%s && ln -s %q/second.%s link.%s"):format(ending, ending, folder, ending, ending))
      write(folder .. "/link." .. ending)
      assert.equal(folder .. "/second." .. ending, run("readlink link." .. ending))
      assert.equal("real/file." .. ending, run("readlink second." .. ending))
      assert.equal("640 regular file", run("stat -c '%a %F' real/file." .. ending))
      assert.not_equal("old", run("cat real/file." .. ending))
      assert.equal("file." .. ending, run("ls -A real"))      -- no temporary file is left
    end)

    it("makes the file that a link points at: " .. ending, function()
      run(("ln -s real/new.%s link.%s"):format(ending, ending))
      write(folder .. "/link." .. ending)
      assert.equal("regular file", run("stat -c %F real/new." .. ending))
      assert.equal("symbolic link", run("stat -c %F link." .. ending))
    end)
  end

  it("is as a new file has it where there is none", function()
    run("umask > umask")
    flow.save_npy(folder .. "/new.npy", flow.ones { 1 })
    local expected = bit.band(tonumber("666", 8), bit.bnot(tonumber(run("cat umask"), 8)))
    assert.equal(("%o"):format(expected), run("stat -c %a new.npy"))
  end)

  it("is refused where it is not a regular file, or a circle of links", function()
    run("mkfifo pipe.npy && ln -s b.npy a.npy && ln -s a.npy b.npy && mkdir folder.npy")
    for name, reason in pairs { ["pipe.npy"] = "it is not a regular file", ["a.npy"] = "Too many levels of symbolic links",
                                ["folder.npy"] = "Is a directory" } do
      local message = support.message_of(function() flow.save_npy(folder .. "/" .. name, flow.ones { 1 }) end)
      assert.truthy(message:find(reason, 1, true), message)
    end
    assert.equal("fifo", run("stat -c %F pipe.npy"))
  end)
end)
