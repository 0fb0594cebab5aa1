-- guide_spec.lua: the guide and the README tell the truth: their code runs and prints what they show, their links lead somewhere, and
-- their lists are those of the library.
local support = require "spec.support.init"
local guide = require "spec.support.guide"

local root = support.root
local build = support.program:match("^(.*)/bin/[^/]*$")

local read = support.read

local function lines_of(command)
  local pipe, lines = assert(io.popen(command)), {}
  for line in pipe:lines() do lines[#lines + 1] = line end
  pipe:close()
  return lines
end

local chapters = lines_of("cd " .. root .. " && ls README.md lua/guide/*.md")

-- Runs a chapter in its own folder that looks like the top of the sources, after scripts/setup. Returns the texts that blocks printed,
-- and what went wrong, or nil.
local function run(path)
  local folder = support.file("empty", ""):match("^(.*)/")
  local links = ("cd %s && rm empty && ln -s %s/{bindings,lua} . && ln -s %s build"):format(folder, root, build)
  assert(os.execute(("bash -c '%s'"):format(links)) == 0)
  local settings = ("env -u FLOWLUA_LIB -u FLOW_DEVICE -u TF_CONFIG PATH=%s/bin:$PATH LUA_PATH='%slua/?.lua;%slua/?/init.lua;;'"):format(
    build, root, root)
  local chapter = path:sub(1, 1) == "/" and path or root .. path
  local command = ("cd %s && %s timeout 240 flowlua %sspec/support/guide.lua %s"):format(folder, settings, root, chapter)
  local output, code = support.run(command)
  local texts = {}
  for i, text in output:gmatch("\1(%d+)\n(.-)\2%1\n") do texts[tonumber(i)] = text end
  os.execute("rm -rf " .. folder)
  return texts, code ~= 0 and output:gsub("[\1\2]%d+\n", ""):sub(-3000) or nil
end

describe("the code of", function()
  for _, path in ipairs(chapters) do
    it(path .. " runs and prints what is shown", function()
      local blocks, compiles = guide.blocks(read(root .. path), path), false
      for _, block in ipairs(blocks) do compiles = compiles or guide.runs(block) and ("\n" .. block.text):find "\ng?cc " end
      if compiles and os.getenv("FLOW_SANITIZED") then return pending("a program without the sanitizer cannot link the library") end
      local texts, wrong = run(path)
      assert.is_nil(wrong)
      for i, block in ipairs(blocks) do
        if guide.runs(block) then assert.truthy(texts[i], ("%s:%d: did not run"):format(path, block.line)) end
        if block.language == "text" and not block.reason and not block.file then
          local shown = blocks[i - 1]
          assert.truthy(shown, ("%s:%d: no block comes before this output"):format(path, block.line))
          if guide.runs(shown) and not guide.agrees(block.text, texts[i - 1], block.varies) then
            error(("%s:%d: shown is\n%s\nprinted was\n%s"):format(path, block.line, block.text, texts[i - 1]), 0)
          end
        end
      end
    end)
  end
end)

describe("the runner of chapters", function()
  it("compares word by word, with ... for any text and numbers that may vary", function()
    assert.is_true(guide.agrees("a (b) 1\n", "a (b) 1  \n\n"))
    assert.is_false(guide.agrees("a 1\n", "a 2\n"))
    assert.is_true(guide.agrees("loss: 0.25 in 3 s\n", "loss: 1.5e-3 in 12.5 s\n", true))
    assert.is_false(guide.agrees("loss: 0.25\n", "accuracy: 0.25\n", true))
    assert.is_true(guide.agrees("first\n...\nlast\n", "first\na\nb\nlast\n"))
    assert.is_false(guide.agrees("first\n...\nlast\n", "first\na\nb\n"))
  end)

  it("refuses blocks that would be skipped without a word", function()
    local function message(text) return select(2, pcall(guide.blocks, text, "x.md")) end
    assert.equal("x.md:1: blocks of python do not run: write a file or a reason", message("```python\n1\n```\n"))
    assert.equal("x.md:1: a fence is ```language or ```language (what to know), got ```", message("```\na\n```\n"))
    assert.equal("x.md:1: (skip) is not known", message("```lua (skip)\na\n```\n"))
    assert.equal("x.md:2: this block has no end", message("\n```lua\n"))
  end)

  it("finds a wrong output and an error", function()
    local path = support.file("x.md", '```lua\nlocal a = 1\n```\n```lua\nprint(a + 1)\n```\n```text\n3\n```\n```lua\nerror "no"\n```\n')
    local texts, wrong = run(path)
    assert.equal("2\n", texts[2])
    assert.truthy(wrong:find("x.md:11: no", 1, true))
  end)
end)

describe("links of", function()
  for _, path in ipairs(chapters) do
    it(path .. " lead to files", function()
      local folder = path:match("^(.*/)") or ""
      for target in read(root .. path):gmatch("%]%(([^)#]+)") do
        if not target:find("^https?:") then
          local file = io.open(root .. folder .. target)
          assert.truthy(file, path .. ": there is no " .. target)
          file:close()
        end
      end
    end)
  end
end)

-- The first column of the tables in a section of a chapter: what is in backquotes.
local function first_column(path, heading)
  local text, found = read(root .. path), {}
  local section = heading and (text:match("\n#+ " .. heading:gsub("%p", "%%%0") .. "\n(.-)\n#") or
    text:match("\n#+ " .. heading:gsub("%p", "%%%0") .. "\n(.*)$")) or text
  assert(section, path .. " has no section " .. tostring(heading))
  for cell in ("\n" .. section):gmatch("\n|([^|\n]*)") do
    for name in cell:gmatch("`([^`]+)`") do found[name] = true end
  end
  return found
end

local function differences(real, shown)
  local list = {}
  for name in pairs(real) do if not shown[name] then list[#list + 1] = name .. " is not in the guide" end end
  for name in pairs(shown) do if not real[name] then list[#list + 1] = name .. " is in the guide only" end end
  table.sort(list)
  return table.concat(list, "\n")
end

describe("lists of the guide", function()
  local KERAS = "lua/guide/16-keras-classes.md"
  local flow = require "flow"
  it("name every variable of the environment that the sources read, and no other", function()
    local real = {}
    local sources = "core bindings kernels lua/flow spec/cuda"
    for _, line in ipairs(lines_of(("cd %s && grep -rohE '\"FLOW(LUA)?_[A-Z_]+\"' %s"):format(root, sources))) do
      real[line:match('"(.*)"')] = true
    end
    for _, line in ipairs(lines_of(("cd %s && grep -rohE 'getenv ?\\(\"[A-Za-z_]+\"' %s"):format(root, sources))) do
      real[line:match('"(.*)"')] = true
    end
    for _, line in ipairs(lines_of(("cd %s && grep -rohE '\\$\\{?FLOW(LUA)?_[A-Z_]+' scripts"):format(root))) do
      real[line:match("FLOW[A-Z_]+")] = true
    end
    for name in ("LC_ALL LC_CTYPE LANG VIRTUAL_ENV CONDA_PREFIX CLUSTER_SPEC JOB_COMPLETION_INDEX GIT_TOKEN"):gmatch "%S+" do
      real[name] = true
    end
    assert.equal("", differences(real, first_column("lua/guide/10-environment-variables.md")))
  end)

  it("are those of the library: layers, losses, metrics, optimizers, schedules", function()
    local chapter = read(root .. KERAS)
    local right = require("spec.support.guide_tables").fill(chapter)
    for _, name in ipairs { "`Conv2D`", "`huber`", "`AUC`", "`AdamW`", "`CosineDecay`" } do
      assert.truthy(right:find("\n| " .. name, 1, true))
    end
    if chapter == right then return end
    local shown, wrong = {}, {}
    for line in chapter:gmatch("[^\n]+") do shown[line] = true end
    for line in right:gmatch("[^\n]+") do if not shown[line] then wrong[#wrong + 1] = line end end
    error(("%s is not what the library has: flowlua spec/support/guide_tables.lua %s\nmissing lines:\n%s"):format(KERAS, KERAS,
      table.concat(wrong, "\n")), 0)
  end)

  it("of what is missing hold nothing that is there", function()
    local section, found = read(root .. KERAS):match("\n## Missing\n(.*)$"), 0
    for kind, names in section:gmatch("\n| (%l+) | (`[^\n]*)") do
      local module = kind == "flow" and flow or flow[kind]
      for name in names:gmatch("`([^`]+)`") do
        found = found + 1
        assert.is_false(pcall(function() return module[name] end), ("%s: %s.%s is not missing any more"):format(KERAS, kind, name))
      end
    end
    assert.truthy(found > 5)
  end)

  it("name every chapter", function()
    local index = read(root .. "lua/guide/README.md")
    for _, path in ipairs(chapters) do
      local name = path:match("^lua/guide/(%d.*)$")
      if name then assert.truthy(index:find("](" .. name .. ")", 1, true), name .. " is not in lua/guide/README.md") end
    end
  end)
end)
