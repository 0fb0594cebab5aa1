-- resume_spec.lua: a run that is killed and started again ends with the same losses, weights and random state, to the last bit, as one
-- that never was. scripts/faults does this a hundred times, at random moments.
local support = require "spec.support.init"

local script = support.root .. "spec/faults/train.lua"

describe("BackupAndRestore", function()
  local folder
  before_each(function()
    folder = support.folder()
  end)
  after_each(function() os.execute("rm -rf " .. folder) end)

  local function train(options)
    local file = folder .. "/out"
    local status = os.execute(("%s %s %s >%s 2>/dev/null"):format(support.program, script, options, file))
    local stream = assert(io.open(file))
    local text = stream:read("*a")
    stream:close()
    return text, status
  end

  local function goes_on(options, ...)
    local expected = train(options)
    assert.truthy(expected:find("weights", 1, true))
    for _, batch in ipairs { ... } do
      local text, status = train(("%s --folder %s --die-at %d"):format(options, folder, batch))
      assert.equal("", text)
      assert.not_equal(0, status)
    end
    local text = train(options .. " --folder " .. folder)
    assert.equal(expected, text)
    assert.is_false(require("flow").io.exists(folder .. "/backup"))
  end

  it("goes on in the middle of an epoch of a shuffled Dataset", function() goes_on("", 7, 33, 20) end)
  it("goes on after a cache of shuffled elements", function() goes_on("--data cached", 7, 33, 20) end)
  it("goes on in the middle of an epoch of tensors", function() goes_on("--data tensors", 33, 12) end)
  it("goes on at epochs, and where epochs are parts of a pass", function()
    goes_on("--every 0", 40)
    goes_on("--limit 20", 13, 25)
    goes_on("--limit 20 --data tensors", 13)
  end)
  it("goes on from backups that a thread wrote", function() goes_on("--background", 8, 30) end)
end)
