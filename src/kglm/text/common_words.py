"""Common English words besides function words: at the beginning of a sentence, or all in small letters, they are
rarely names."""

from __future__ import annotations

from functools import lru_cache

from kglm.text.function_words import FUNCTION_WORDS

_OPENERS = """
today yesterday tomorrow tonight meanwhile however therefore thus hence moreover furthermore nevertheless nonetheless
instead otherwise perhaps maybe indeed finally initially originally eventually recently currently formerly previously
later earlier afterwards already always often sometimes usually generally especially particularly similarly likewise
additionally according due despite everyone everybody someone somebody anyone anybody nobody nothing everything
something anything please yes well like let unlike following given including based using whether together ago away
back monday tuesday wednesday thursday friday saturday sunday january february march april june july august september
october november december spring summer autumn winter one two three four five six seven eight nine ten eleven twelve
twenty thirty hundred thousand million second third fourth fifth half
"""
_WORDS = """
able about accept act action add admit age agree air allow amount animal answer appear area arm army arrive art ask
attack baby bad bag ball bank bar base bear beat beautiful become bed begin behind believe best better big bird birth
black block blood blow blue board boat body bolt bone book born both bottom box boy bread break bridge bright bring
broad brother brown build building burn bush business buy call camera camp capital car card care carry case castle
catch cause central century certain chair chance change charge cheap check child choose church circle city claim class
clean clear climb clock close cloud club coast coat cold college colour color come common company complete consider
contain continue control cook cool copy corner cost count country couple course court cover crazy create cross crowd
cry cup current cut dance danger dark date daughter day dead deal dear death deep design desk die different difficult
dinner discover dog door doom double doubt draw dream dress drink drive drop dry early earth east easy eat edge effort
egg end enemy energy engine enjoy enough enter escape even evening event exact example expect eye face fact fair fall
family famous far farm fast father fear feed feel feet fell field fight figure fill film find fine finger finish fire
fish fit flat floor flow flower fly follow food foot force ford foreign forest forget form foster free fresh friend
front fruit full fun funny future game garden gate general gift girl give glad glass go goal god gold good government
grass gravity great green ground group grow guard guess guide gun hair hall hand happen happy hard hat head hear heart
heat heavy help hide high hill history hit hold hole holiday home hope horse hospital hot hotel hour house huge human
hunt hurry husband ice idea imagine important inside interest iron island job join journey jump keep key kick kid kill
kind king kiss kitchen knife know lady lake land language large late laugh law lay lead leader leaf learn leave left leg
legal length letter level lie life lift light line lion list listen little live local lock lonely long look lose loss
lot loud love low luck lunch machine main make man many map mark market marry master match matter mean measure meat
meet member memory mercury message metal middle milk mind mine minute miss mistake modern moment money monster month
moon morning mother mountain mouth move movie music name narrow nation nature near neck need network never new news
night noise normal north nose note notice number ocean offer office old open opposite orange order orphan other owner
page pain paint pair palace paper parent park part party pass past path pay peace pen people person photo phone piece
pink place plain plan plane planet plant play player poem poet point police poor popular position possible post power
practice present president press pretty price pride pride prince princess prison problem produce proud public pull
purple push put queen question quick quiet race radio rain raise reach read ready real reason receive record red
remember remove repeat reply report rest return rice rich ride right ring rise river road rock rocky roll roof room
rose rough round row royal rule run sad safe sail salt same sand save say scene school science sea season seat secret
see seem sell send sense serve service set several shadow shake shape share sharp ship shirt shoe shoot shop shore short
shout show shut sick side sign silence silver simple sing single sister sit size skin sky sleep slow small smell smile
smoke snow soft soil soldier solution son song soon sort soul sound south space speak special speed spend spot square
stage stand star start state station stay steal steel step stick stone stop storm story strange stream street strike
string strong student study success sudden sugar suggest sun sure surprise sweet swift swim sword system table tail take
talk tall taste teach teacher team tear tell temple test thick thin thing think thriller throw time tiny tired tired
together tool top total touch toward tower town toy trade train travel treasure tree trip trouble true trust truth try
turkey turn type uncle understand unit use usual valley value victory view village visit voice wait walk wall want war
warm wash watch water wave way weak wear weather week weight welcome west wet wheel white whole wide wife wild win wind
window wine wing winner wish woman wonder wood word work worker world worry write wrong yard year yellow young apple
independence titanic target adobe reading freedom justice liberty union gates lost
"""
OPENERS = frozenset(_OPENERS.split())
"""Words that often begin sentences and are rarely part of a name: adverbs, days, months, numbers."""
COMMON_WORDS = FUNCTION_WORDS | OPENERS | frozenset(_WORDS.split())
_ENDINGS = ("s", "es", "ed", "d", "ing", "ly", "er", "'s")


@lru_cache(1 << 16)
def is_common(word: str) -> bool:
    """True for a common word or a regular form of one: "houses", "walked", "quickly"."""
    small = word.casefold()
    if small in COMMON_WORDS:
        return True
    return any(
        small.endswith(ending)
        and (small[: -len(ending)] in COMMON_WORDS or small[: -len(ending)] + "e" in COMMON_WORDS)
        for ending in _ENDINGS
        if len(small) > len(ending) + 2
    )
