-- guide.lua: runs the code of a chapter of lua/guide, in order, and compares what it prints with what the chapter shows.
--
-- A fenced block begins with its language and, in brackets, what else there is to know of it:
--   ```lua                      runs; all Lua blocks of a chapter are one script: a local of one block is there in those that follow
--   ```sh                       runs, at its place among the Lua blocks; standard output and errors are one text
--   ```lua (file: train.lua)    becomes this file in the folder in which the chapter runs; any language
--   ```sh (not run: REASON)     does not run
--   ```sh (fails)               runs, and ends with another exit code than 0
--   ```text                     what the block before it prints; ... stands for any text
--   ```text (numbers vary)      the same, but each number stands for any number
--
-- As a script, `flowlua spec/support/guide.lua CHAPTER` runs the blocks in the current folder. A line "\1N" comes before what block N
-- prints, and "\2N" after it.
local guide = {}

local RUNS = { lua = true, sh = true }

-- A list of { language, line, text, file, reason, fails, varies }; line is that of the fence. Raises an error for a block that would be
-- skipped without a word.
function guide.blocks(text, name)
  local blocks, open, number = {}, nil, 0
  for line in (text:gsub("\n?$", "\n")):gmatch("(.-)\n") do
    number = number + 1
    if open and line == "```" then
      open.text = table.concat(open.lines, "\n") .. "\n"
      blocks[#blocks + 1], open = open, nil
    elseif open then
      open.lines[#open.lines + 1] = line
    elseif line:find("^```") then
      local language, about = line:match("^```(%l+)$"), nil
      if not language then language, about = line:match("^```(%l+) %((.+)%)$") end
      if not language then error(("%s:%d: a fence is ```language or ```language (what to know), got %s"):format(name, number, line), 0) end
      open = { language = language, line = number, lines = {} }
      if about then
        open.file, open.reason = about:match("^file: (%S+)$"), about:match("^not run: (.+)$")
        open.fails, open.varies = about == "fails", about == "numbers vary"
        if not (open.file or open.reason or open.fails or open.varies) then
          error(("%s:%d: (%s) is not known"):format(name, number, about), 0)
        end
      end
      if not (RUNS[language] or open.file or open.reason or language == "text") then
        error(("%s:%d: blocks of %s do not run: write a file or a reason"):format(name, number, language), 0)
      end
    end
  end
  if open then error(("%s:%d: this block has no end"):format(name, open.line), 0) end
  return blocks
end

function guide.runs(block)
  return RUNS[block.language] and not block.file and not block.reason
end

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

local NUMBER = "%-?%d+%.?%d*e?[+-]?%d*"
local function any_number(text)      -- and any unit of a duration: 900us/step, 1ms/step
  return (text:gsub("(%d),(%d%d%d)", "%1%2"):gsub(NUMBER, "0"):gsub("%f[%w]0[mu]s/", "0s/"))
end

-- Whether `found` is what `expected` shows.
function guide.agrees(expected, found, varies)
  local function tidy(text) return (text:gsub("[ \t]+\n", "\n"):gsub("%s+$", "")) end
  expected, found = tidy(expected), tidy(found)
  if varies then
    expected, found = any_number(expected:gsub("%.%.%.", "\1")):gsub("\1", "..."), any_number(found)
  end
  local pattern = expected:gsub("%p", "%%%0"):gsub("%%%.%%%.%%%.", ".-")
  return found:find("^" .. pattern .. "$") ~= nil
end

-- The chapter as a script with the blocks' own line numbers.
local function script_of(blocks)
  local lines, count = {}, 0
  local function put(number, text)
    for i = count + 1, number - 1 do lines[i] = lines[i] or "" end
    lines[number], count = text, math.max(count, number)
  end
  for i, block in ipairs(blocks) do
    if block.file then
      put(block.line, ("guide_write(%d)"):format(i))
    elseif block.language == "lua" and guide.runs(block) then
      put(block.line, ("guide_begin(%d)"):format(i))
      for j, line in ipairs(block.lines) do put(block.line + j, line) end
      put(block.line + #block.lines + 1, ("guide_end(%d)"):format(i))
    elseif guide.runs(block) then
      put(block.line, ("guide_begin(%d) guide_shell(%d) guide_end(%d)"):format(i, i, i))
    end
  end
  return table.concat(lines, "\n") .. "\n"
end

local function run(path)
  local name = path:match("[^/]+$")
  local blocks = guide.blocks(read(path), name)
  local function mark(character, i)
    io.write(character, i, "\n")
    io.flush()
  end
  local environment = setmetatable({
    guide_begin = function(i) mark("\1", i) end,
    guide_end = function(i) mark("\2", i) end,
    guide_write = function(i) write(blocks[i].file, blocks[i].text) end,
    guide_shell = function(i)
      local block = blocks[i]
      write(".block.sh", "exec 2>&1\nset -e\n" .. block.text)
      local ended = os.execute("bash .block.sh </dev/null")
      if (ended ~= 0) ~= (block.fails or false) then
        error(("%s:%d: the commands ended with status %d"):format(name, block.line, ended), 0)
      end
    end,
  }, { __index = _G, __newindex = _G })
  local chunk = assert(loadstring(script_of(blocks), "@" .. name))
  setfenv(chunk, environment)()
end

if arg and arg[0] and arg[0]:find("spec/support/guide%.lua$") then return run(arg[1]) end
return guide
