import type { LanguageWords } from './types';

export const de: LanguageWords = {
  name: 'German',
  stopWords:
    'der die das den dem des ein eine einen einem einer eines und oder aber von vom in im an am auf zu zum zur mit bei beim für aus nach vor hinter neben über unter durch um bis als während wenn dann dass dies diese dieser dieses es sich ist sind war waren sein wird werden wurde hat haben hatte kann er sie ihr ihre ihren ihrem ihrer seine seinen seinem seiner sein wir uns du ich mein da hier wer was wo sehr so nur auch noch mehr alle beide jede jeder wieder dabei',
  negations:
    'kein|keine|keinen|keinem|keiner|keines|nicht|ohne|nie|niemals|nichts|niemand|weder|vermeide|vermeiden',
  numbers:
    'zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig',
  directions: [
    ['links', 'rechts'],
    ['linke[rnsm]?', 'rechte[rnsm]?'],
    ['aufwärts|hinauf|herauf|oben|hoch', 'abwärts|hinab|herab|unten|hinunter|herunter'],
    ['vorwärts|vorne?', 'rückwärts|hinten'],
    ['hinein|herein', 'hinaus|heraus'],
    ['im uhrzeigersinn', 'gegen den uhrzeigersinn'],
  ],
  camera: 'kamera',
  moves: {
    static:
      'kamera~ (still|ruhig|fest|statisch|unbewegt|starr)|(statische|feste|ruhige|starre) (kamera|einstellung)|stativ',
    zoom: '\\p{L}*zoom\\p{L}*',
    in: '(zoomt?|fährt|kamera)~ (heran|hinein|rein|näher)|(heran|hinein)(zoom|fahr)\\p{L}*|nähert sich~ kamera|kamera~ nähert',
    out: '(zoomt?|fährt|kamera)~ (heraus|hinaus|zurück|raus)|(heraus|zurück)(zoom|fahr)\\p{L}*|kamera~ entfernt',
    pan: '\\p{L}*schwenk\\p{L}*',
    tilt: 'kamera~ neigt',
    orbit: 'kamera~ (umkreist|umrundet|kreist|dreht)|kreisfahrt',
    track: 'kamera~ (folgt|verfolgt|begleitet)|verfolgungsfahrt',
    dolly: '\\p{L}*kamerafahrt|dolly',
    crane: 'kranfahrt|kamera~ (steigt|sinkt|hebt|senkt)',
    handheld: 'handkamera|verwackelt',
    move: 'kamera~ (fährt|bewegt|gleitet|schwebt|wandert)',
  },
  motion:
    'langsam sanft leicht ruhig gleichmäßig allmählich leise weich stetig bewegung bewegungen bewegt bewegen kamera hält bleibt still ruht licht schatten schimmert flackert leuchtet wiegt schwingt atmet blinzelt dreht geht weiter hin her rhythmus schritt schritte fließend natürlich dezent bild',
  persons:
    'mann männer frau frauen person personen mensch menschen mädchen junge jungen kind kinder baby babys dame herr paar paare menge leute jemand freund freunde freundin fremde gestalt mutter vater tänzerin tänzer',
  intimate:
    'brust brüste busen dekolleté schenkel oberschenkel hüfte hüften po hintern gesäß bauch bauchnabel taille oberkörper haut nackt nackte nackten nackter unbekleidet entkleidet dessous unterwäsche bikini',
};
