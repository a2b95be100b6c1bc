/**
 * Word lists of the one refusal in {@link isRefusedPrompt}: small, and only terms whose meaning does not
 * depend on the context. Lower case; a space stands for any white space or hyphen. Terms that mean something
 * harmless in another of the seven languages ("kind", "nina", "baiser") are left out or stand as a phrase.
 * `(`, `|`, `?` have their meaning of a regular expression.
 */
export const sexualTerms = [
  // en
  'porn|porno|pornographic|pornography|hentai|lolicon|shotacon|erotic|erotica|sexy',
  '(having|has|have|had) sex|sex (scene|act|acts|tape|position|with)|(oral|anal|group) sex',
  'sexual (act|acts|intercourse|pose|position)|sexually (explicit|suggestive|arousing|aroused)',
  'masturbat(e|es|ing|ion)|orgasm|orgy|blowjob|handjob|cumshot|dildo|striptease',
  'fuck|fucks|fucked|fucking|raping|rapes|(being|is|gets) raped|rape scene|molests|molesting',
  // de
  'pornos|pornogra(f|ph)ie|pornogra(f|ph)isch(e|en|er|es|em)?|erotisch(e|en|er|es|em)?|erotik',
  'sexszene|sexuelle(n|r)? (handlung|handlungen|pose|posen)|geschlechtsverkehr|geschlechtsakt',
  'sex (haben|hat|mit)|(haben|hat|beim) sex|oralsex|analsex|gruppensex|ficken|fickt|orgasmus|orgie',
  'masturbier(t|en)|selbstbefriedigung|vergewaltigt eine?n?|vergewaltigungsszene',
  // fr
  'pornographie|pornographiques?|érotiques?|acte sexuel|actes sexuels|rapports? sexuels?',
  "relations? sexuelles?|scène de sexe|fai(re|t|sant) l'amour|font l'amour|masturbe(r|nt)?|orgasme",
  // es
  'pornografía|pornográfic(o|a|os|as)|erótic(o|a|os|as)|acto sexual|actos sexuales',
  'relaciones sexuales|(tener|tiene|tienen|teniendo) sexo|sexo (oral|anal|explícito)|escena de sexo',
  'masturb(a|an|arse|ándose|ación)|orgasmo|orgía|follando',
  // it
  'pornografi(a|co|ca|ci|che)|erotic(o|a|i|he)|atto sessuale|atti sessuali|rapport(o|i) sessual(e|i)',
  '(fare|fa|fanno|facendo) sesso|sesso (orale|anale|esplicito)|scena di sesso|masturb(arsi|azione)',
  // pt
  'pornô|pornográfic(a|o|as|os)|ato sexual|atos sexuais|relação sexual|relações sexuais',
  '(fazer|faz|fazem|fazendo) sexo|cena de sexo|masturbação|transando',
] as const;

/** Nakedness is no sexual term by itself; beside a child term it counts as one. */
export const nudityTerms = [
  'nude|naked|topless|lingerie|sensual|sensually|seductive|seductively|genitals|vagina|penis',
  'nackt|nackte|nacktes|nackter|nackten|nacktem|unbekleidet(e|es|er|en)?',
  'nue|nues|nus|nu|desnud(o|a|os|as)|nud(o|a|i)|nua|nuas|despid(o|a|os|as)',
] as const;

/** Beside one of these, nakedness is that of an adult or of a work of art. */
export const adultTerms = [
  'woman|women|man|men|adult|adults|mother|father|model|statue|statues|sculpture|venus',
  'frau|frauen|mann|männer|mutter|vater|femme|femmes|homme|hommes|mère|père|hombre|hombres',
  'mujer|mujeres|madre|padre|estatua|donna|donne|uomo|uomini|statua',
  'mulher|mulheres|homem|homens|mãe|pai|estátua',
] as const;

export const childTerms = [
  // en
  'child|children|kid|kids|toddler|toddlers|infant|infants|newborn|newborns|babies|minors',
  '(a|the|his|her|their|naked|nude) baby|baby (boy|boys|girl|girls)|underaged?|under age|pre ?teens?',
  '(with|of) a minor(?! \\p{L})',
  'teen|teens|teenage|teenager|teenagers|adolescents?|jailbait|loli|lolis|lolicon|shotacon',
  '(little|small|young) (girl|girls|boy|boys)|school ?(girl|girls|boy|boys|child|children|kid|kids)',
  '(middle|high) schoolers?|preschoolers?|under (18|eighteen)|younger than (18|eighteen)',
  // de
  'kinder|kindern|kindes|kleinkind|kleinkinder|kleinkindern|schulkind|schulkinder|grundschüler(in|innen|n)?',
  '(ein|das|dem|dieses|kleines|junges|nacktes) kind|säuglinge?|minderjährig(e|er|es|en|em)?|jugendliche(r|n)?',
  'kleine(s|n)? mädchen|junge(s|n)? mädchen|schulmädchen|kleine(r|n)? jungen?|(ein|das|dem) baby|babys|teenies?',
  // fr
  'enfants?|fillettes?|petites? filles?|petits? garçons?|bébés?|gamines?|gamins?|nourrissons?|gosses?',
  'écoli(er|ers|ère|ères)|collégien(s|ne|nes)?|(fille|fillette|personne) mineure|adolescentes?',
  // es
  'niñ(o|a|os|as|ito|ita|itos|itas)|bebé|bebés|menor(es)? de edad|colegiales?|colegialas?|infantil|quinceañeras?',
  // it
  'bambin(o|a|i|e)|ragazzin(o|a|i|e)|bimb(a|i|e)|minorenn(e|i)|neonat(o|a|i|e)',
  // pt
  'criança|crianças|menin(o|a|os|as)|menininh(o|a|as|os)|garotinh(o|a|as|os)|bebês?|neném',
] as const;

/** Phrases whose words mean something else; they are taken out before the lists are compared. */
export const harmlessPhrases = [
  'baby (blue|pink|oil|doll|bump|shower|grand|face)',
  'naked (eye|eyes|mole|truth|flame)|nude (lipstick|heels|colou?r(ed)?|tones?)|enfant terrible',
  "(child|kid)'s play|kid (gloves|leather)|nackte(n|r|s)? (füße|füßen|auge|wahrheit|arme|armen|beine|beinen)",
  'pieds nus|tête nue|mains nues|bras nus|torse nu|(œil|oeil) nu|(pies|pie) desnudos?|ojos? desnudos?',
  'torso desnudo|piedi nudi|piede nudo|occhio nudo|mani nude|torso nudo|pés nus|olho nu|mãos nuas|tronco nu',
] as const;

/** Numbers below 18 as words, with their value as the index. Ages below one year are named "baby". */
export const numbersBelow18: readonly string[] = [
  'zero',
  'one|ein|un|un|uno|um|一',
  'two|zwei|deux|dos|due|dois|两|兩|二',
  'three|drei|trois|tres|tre|três|三',
  'four|vier|quatre|cuatro|quattro|quatro|四',
  'five|fünf|cinq|cinco|cinque|五',
  'six|sechs|seis|sei|六',
  'seven|sieben|sept|siete|sette|sete|七',
  'eight|acht|huit|ocho|otto|oito|八',
  'nine|neun|neuf|nueve|nove|九',
  'ten|zehn|dix|diez|dieci|dez|十',
  'eleven|elf|onze|once|undici|十一',
  'twelve|zwölf|douze|doce|dodici|doze|十二',
  'thirteen|dreizehn|treize|trece|tredici|treze|十三',
  'fourteen|vierzehn|quatorze|catorce|quattordici|catorze|quatorze|十四',
  'fifteen|fünfzehn|quinze|quince|quindici|十五',
  'sixteen|sechzehn|seize|dieciséis|dieciseis|sedici|dezesseis|dezasseis|十六',
  'seventeen|siebzehn|dix sept|diecisiete|diciassette|dezessete|dezassete|十七',
];

/** Things that have an age without being a person. */
export const agedThings = [
  'whisky|whiskey|scotch|bourbon|rum|wine|brandy|cognac|port|cheese|malt|car|truck|bike|boat|ship|house|building',
  'tree|oak|dog|cat|horse|company|marriage|old tree|laptop|engine|guitar|violin|coat|dress|book|film|wein|käse|rum',
  'auto|hund|katze|pferd|baum|haus|vin|rhum|fromage|voiture|chien|chat|cheval|arbre|maison|ron|vino|queso|coche',
  'perro|gato|caballo|árbol|casa|formaggio|macchina|cane|gatto|cavallo|albero|vinho|queijo|carro|cachorro|cavalo|árvore',
] as const;

/** Before or after a number of years, these make a duration of it (French, Spanish, Italian, Portuguese). */
export const durationBefore =
  'depuis|pendant|durant|il y a|après|dans|hace|durante|desde hace|tras|después de|por|da|per|dopo|há|por|após|faz';
export const durationAfter =
  "plus tard|après|auparavant|d'âge|de (?!edad|idade)|después|más tarde|atrás|di (?!età)|fa|dopo|depois|mais tarde|d'";

/** Chinese has no spaces: a term is found anywhere but beside the characters that make another word of it. */
export const chinese = {
  sexual: [
    '色情|情色|淫秽|手淫|(?<!以)自慰|成人片|强奸(?=了?(一名|一个)?(女童|男童|幼女|儿童|小孩))',
    '性感(?![染冒觉受知官情])|性交(?![付易费流通互换叉织往谈纳融给警情接友])',
    '做爱(?![心国好护情])|(?<![男女])性爱(?![好护心国])|(?<![路门出进港窗关])口交(?![通叉易谈流换汇付界接作])',
  ],
  nudity: ['裸体|全裸|赤裸(?!裸)|裸露'],
  adult: ['女人|男人|女性|男性|雕像|母亲|父亲'],
  child: [
    '儿童|兒童|(?<![男女])孩子|小孩|小女孩|小男孩|幼女|女童|男童|幼儿|婴儿|嬰兒|未成年|小学生|初中生|中学生|萝莉|正太',
  ],
  agedThings: ['狗|猫|马|树|威士忌|酒|车|公司'],
} as const;
