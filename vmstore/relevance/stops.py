"""Stop words by language: words so frequent that they say nothing of what a text is about.

Short lists, without accents. A language without a list has none: the weight of a word already says how rare it is.
"""

from __future__ import annotations

_WORDS = {
    "en": """
        a about after again all also am an and any are as at be because been before being but by can could did do does
        doing done for from get got had has have having he her here hers him his how i if in into is it its itself just
        let me might more most must my no nor not now of off on once only or other our ours out over own same shall she
        should so some such than that the their theirs them then there these they this those through to too under until
        up us very was we were what when where which while who whom whose why will with would you your yours yourself
        arent cannot cant couldnt didnt doesnt dont hadnt hasnt havent im isnt ive shouldnt thats theyre wasnt werent
        whats wont wouldnt youre youve""",
    "de": """
        aber als am an auch auf aus bei bin bis das dass dem den der des die dir du durch ein eine einem einen einer
        eines er es fur hat ich ihr im in ist ja kann mein mich mir mit nach nicht noch nur oder sein sich sie sind so
        uber um und uns unter von vor war was wenn wer wie wir wird zu zum zur""",
    "fr": """
        a ai au aux avec ce ces cette dans de des du elle en est et eu il ils je la le les leur lui ma mais me mes mon
        ne nos notre nous on ou par pas pour qu que qui sa se ses son sont sur ta te tes ton tu un une vos votre vous
        c d j l m n s t y""",
    "es": """
        a al como con de del el ella en es esta este ha la las le les lo los mas me mi muy no nos o para pero por que
        se si sin son su sus te tu un una y ya yo""",
    "it": """
        a ai al alla anche che chi ci come con da dal dei del della di e ed gli ha ho i il in io la le lei lo ma mi
        ne nel nella non o per piu se si sono su tra un una uno l d c""",
    "pt": """
        a ao aos as com como da das de do dos e ela ele em eu foi ha isso mais mas me meu na nas nao no nos o os ou
        para pela pelo por que se seu sua um uma voce""",
    "nl": """
        aan al als bij dat de den der die dit door een en er had heeft het hij ik in is je kan maar me met mijn naar
        niet nog nu of om ook op over te tot uit van voor was wat we wel wij zijn zo""",
}
STOP_WORDS = {language: frozenset(words.split()) for language, words in _WORDS.items()}
