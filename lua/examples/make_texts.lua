-- make_texts.lua: sentences of a small grammar, in plain words and in a made-up language, for char_lstm.lua, mini_gpt.lua and
-- translation.lua. The verb agrees with its subject, which may be far in front of it, so that there is something to learn, and whether
-- a text is a sentence can be said.
--
--   flowlua lua/examples/make_texts.lua --count 5 --seed 1           prints sentences with their translations
local flow = require "flow"

local texts = {}

-- Plain words, and those of the made-up language, by kind.
local NOUNS = { king = "zul", river = "mara", fox = "tep", child = "lino", tower = "gor", bird = "fiu", friend = "sela", garden = "obra" }
local ADJECTIVES = { old = "ka", quiet = "shu", red = "ro", happy = "lil", small = "min", proud = "dor" }
local VERBS = { see = "vid", follow = "nak", find = "lop", greet = "hai", paint = "kre" }

local function plural(noun) return noun == "child" and "children" or noun == "fox" and "foxes" or noun .. "s" end

local function keys(words)
  local list = {}
  for word in pairs(words) do list[#list + 1] = word end
  table.sort(list)
  return list
end
local nouns, adjectives, verbs = keys(NOUNS), keys(ADJECTIVES), keys(VERBS)

local function any(list) return list[math.random(#list)] end
local function chance(share) return math.random() < share end

-- A noun with what goes with it: { noun, plural, adjective or nil, near: such a phrase or nil }.
local function new_phrase(depth)
  return { noun = any(nouns), many = chance(0.5), adjective = chance(0.5) and any(adjectives) or nil,
           near = depth > 0 and chance(0.3) and new_phrase(depth - 1) or nil }
end

local function plain_phrase(phrase)
  local noun = phrase.many and plural(phrase.noun) or phrase.noun
  local near = phrase.near and " near " .. plain_phrase(phrase.near) or ""
  return "the " .. (phrase.adjective and phrase.adjective .. " " or "") .. noun .. near
end

-- In the made-up language the adjective follows its noun, many are "im", and what something is near is in front of it, with "eb".
local function other_phrase(phrase)
  local noun = NOUNS[phrase.noun] .. (phrase.many and "im" or "")
  local near = phrase.near and other_phrase(phrase.near) .. " eb " or ""
  return near .. noun .. (phrase.adjective and " " .. ADJECTIVES[phrase.adjective] or "")
end

-- A sentence and its translation, in which the verb is last.
local function new_pair()
  local subject, verb, object = new_phrase(1), any(verbs), new_phrase(0)
  return ("%s %s %s"):format(plain_phrase(subject), subject.many and verb or verb .. "s", plain_phrase(object)),
    ("%s %s %s%s"):format(other_phrase(subject), other_phrase(object), VERBS[verb], subject.many and "en" or "")
end

-- `count` sentences, and their translations, in two lists; those of one seed are the same everywhere.
function texts.make(count, seed)
  math.randomseed(seed)
  local plain, other = {}, {}
  for i = 1, count do plain[i], other[i] = new_pair() end
  return plain, other
end

---- is a text a sentence -----------------------------------------------------------------------------------------------------------

local kind_of = { the = "the", near = "near" }
for noun in pairs(NOUNS) do kind_of[noun], kind_of[plural(noun)] = "one", "many" end
for adjective in pairs(ADJECTIVES) do kind_of[adjective] = "adjective" end
for verb in pairs(VERBS) do kind_of[verb], kind_of[verb .. "s"] = "verb of many", "verb of one" end

function texts.is_word(word) return kind_of[word] ~= nil end

-- Whether the text, without a full stop, is what make() could have given.
function texts.is_sentence(text)
  local kinds, at = {}, 1
  for word in text:gmatch "%S+" do kinds[#kinds + 1] = kind_of[word] or "unknown" end
  local function take(kind)
    if kinds[at] ~= kind then return false end
    at = at + 1
    return true
  end
  local function phrase()      -- the number of its noun
    if not take "the" then return nil end
    take "adjective"
    return take "one" and "one" or take "many" and "many" or nil
  end
  local number = phrase()
  if number and take "near" and not phrase() then return false end
  return number ~= nil and take("verb of " .. number) and phrase() ~= nil and at == #kinds + 1
end

if arg and arg[0] and arg[0]:find "make_texts" then
  local options = flow.args { count = 5, seed = 1 }
  local plain, other = texts.make(options.count, options.seed)
  for i = 1, options.count do print(("%s.  %s."):format(plain[i], other[i])) end
end
return texts
