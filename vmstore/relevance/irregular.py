"""English forms that no rule of endings brings together: irregular verbs and plurals, and two spellings of a word.

A form that is more often another word is left out: `saw` counts as seeing, but `lay`, `bit` and `rose` as themselves.
"""

from __future__ import annotations

_FORMS = """
ate:eat eaten:eat became:become began:begin begun:begin bent:bend blew:blow blown:blow bought:buy broke:break
broken:break brought:bring built:build came:come caught:catch chose:choose chosen:choose dealt:deal drank:drink
drawn:draw drew:draw driven:drive drove:drive dug:dig fallen:fall fed:feed fell:fall felt:feel flew:fly flown:fly
forgot:forget forgotten:forget forgave:forgive fought:fight found:find froze:freeze frozen:freeze gave:give
given:give gone:go grew:grow grown:grow heard:hear held:hold hid:hide hidden:hide hung:hang kept:keep knew:know
known:know led:lead left:leave lent:lend lost:lose made:make meant:mean met:meet overcame:overcome paid:pay ran:run
ridden:ride risen:rise rode:ride said:say sang:sing sung:sing saw:see seen:see sent:send shaken:shake shook:shake
shot:shoot slept:sleep slid:slide sold:sell sought:seek spent:spend spoke:speak spoken:speak spun:spin stole:steal
stolen:steal stood:stand struck:strike stuck:stick swam:swim swum:swim swept:sweep swung:swing taken:take
taught:teach thought:think threw:throw thrown:throw told:tell took:take tore:tear torn:tear understood:understand
went:go woke:wake withdrew:withdraw withdrawn:withdraw won:win wore:wear worn:wear wrote:write written:write
children:child feet:foot geese:goose men:man mice:mouse people:person teeth:tooth women:woman wives:wife knives:knife
indices:index matrices:matrix vertices:vertex
"""
_SPELLINGS = """
analys:analyz armour:armor behaviour:behavior catalogu:catalog centr:center chequ:check colour:color
dialogu:dialog favour:favor favourit:favorit flavour:flavor grey:gray harbour:harbor honour:honor humour:humor
jewelleri:jewelri labour:labor litr:liter metr:meter neighbour:neighbor programm:program rumour:rumor theatr:theater
"""


def _table(text: str) -> dict[str, str]:
    return {form: plain for form, _, plain in (pair.partition(":") for pair in text.split())}


FORMS = _table(_FORMS)
"""A form as it is written, and the word it is one of."""
SPELLINGS = _table(_SPELLINGS)
"""A stem in British spelling, and in American."""
