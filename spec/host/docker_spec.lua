-- docker_spec.lua: the images' recipes hold what flowlua needs to run, and the example's containers find themselves.
local support = require "spec.support.init"

local build = support.program:match("^(.*)/bin/[^/]*$")

local function read(path)
  local file = assert(io.open(support.root .. path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

describe("scripts/docker", function()
  it("installs every library that program, library and plugins need in the run-time image", function()
    if os.execute("command -v dpkg >/dev/null && command -v ldd >/dev/null") ~= 0 then return pending("dpkg is not installed") end
    if os.getenv("FLOW_SANITIZED") then return pending("the program needs the sanitizers' libraries, which the image lacks") end
    local stage = read("scripts/docker/Dockerfile"):match "\nFROM [^\n]*\nARG.-\n(RUN .-)\nCOPY"
    local there = { libc6 = true }
    for name in stage:gmatch "[%w.+-]+" do there[name] = true end
    local files = ("%s/bin/flowlua %s/lib/libflow.so.0"):format(build, build)
    for _, name in ipairs { "image", "control" } do      -- HDF5 and MPI are built only where their libraries are
      local path = ("%s/lib/libflow_%s.so"):format(build, name)
      if io.open(path) then files = files .. " " .. path end
    end
    local count = 0
    for library in support.run("ldd " .. files):gmatch "=> (/%S+)" do
      local owner = not library:find(build, 1, true) and support.run("dpkg -S $(realpath " .. library .. ") /usr" .. library
        .. " 2>/dev/null"):match "^([^:]+):"
      if owner then
        count = count + 1
        -- Debian has two packages of LuaJIT.
        assert.truthy(there[owner] or owner == "libluajit-5.1-2", library .. " is of " .. owner .. ", which the image lacks")
      end
    end
    assert.is_true(count > 0, support.run("ldd " .. files))
  end)

  it("starts the example's tasks with a cluster in which each has its place", function()
    local found = {}
    for config in read("scripts/docker/compose.yaml"):gmatch "TF_CONFIG: '([^']+)'" do
      local code = "local r = flow.distribute.ClusterResolver() print(r.task_type, r.num_workers)"
      found[#found + 1] = support.run(("TF_CONFIG='%s' %s -e '%s'"):format(config, support.program, code))
    end
    assert.same({ "chief\t2\n", "worker\t2\n" }, found)
  end)
end)
