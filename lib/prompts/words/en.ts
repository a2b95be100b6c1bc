import type { LanguageWords } from './types';

export const en: LanguageWords = {
  name: 'English',
  stopWords:
    'a an the and or but of in on at to from with by for into onto over under through across along around behind beside between near off out up down as while when then that this these those it its is are was were be being been am has have had having do does did will would can could may might must he she they them him her his their we us our you your i my me there here who which what where very so just also only one some any each both all more most other than too again still until before after during about above below toward towards',
  negations:
    "no|not|without|never|none|nobody|nothing|neither|nor|avoid|avoids|avoiding|cannot|dont|doesnt|wont|isnt|\\p{L}+n't",
  numbers:
    'two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty',
  directions: [
    ['left|leftward|leftwards', 'right|rightward|rightwards'],
    ['up|upward|upwards', 'down|downward|downwards'],
    ['toward|towards', 'away'],
    ['forward|forwards', 'backward|backwards'],
    ['clockwise', 'counterclockwise|anticlockwise|counter clockwise|anti clockwise'],
    ['inward|inwards', 'outward|outwards'],
  ],
  camera: 'camera',
  moves: {
    static:
      'camera~ (still|static|fixed|stationary|steady|locked)|(static|fixed|still|locked) (camera|shot)|tripod',
    zoom: 'zoom(s|ed|ing)?',
    in: '(zoom(s|ed|ing)?|push(es|ing)?|dolly(ing)?|dollies)( \\p{L}+ly)? in|camera~ closer',
    out: '(zoom(s|ed|ing)?|pull(s|ing)?|dolly(ing)?|dollies)( \\p{L}+ly)? (out|back|away)|camera~ away',
    pan: 'pan(s|ned|ning)?',
    tilt: 'camera~ tilt(s|ing)?|tilt (up|down|shot)',
    orbit: 'orbit(s|ing)?|camera~ (circles|circling|rotates|revolves|spins)|arc shot|360',
    track: 'tracking shot|camera~ (follow|track|trail)(s|ing)?|follow(ing)? shot|travelling shot',
    dolly: 'dolly(ing)?|dollies',
    crane: 'crane shot|camera~ (rises?|rising|lifts?|lowers?|descends?|cranes?)|drone shot',
    handheld: 'hand ?held|shaky',
    move: 'camera~ (moves?|moving|advances?|glides?|drifts?|sways?|approach(es)?|pulls?|push(es)?|sweeps?|turns?)',
  },
  motion:
    'slowly gently softly smoothly steadily gradually slightly lightly calmly evenly quietly slow gentle soft smooth steady subtle slight calm natural motion movement moves move moving camera holds hold still remains stays shot frame light shadow shadows shimmers flickers glows sways sway swaying drifts drifting breathes blinks turns turn continues continue keeps rises falls back forth side pace rhythm step steps fluid',
  persons:
    'man men woman women person persons people girl girls boy boys child children baby babies lady ladies guy guys couple couples crowd crowds someone somebody friend friends stranger strangers figure figures kid kids mother father dancer dancers',
  intimate:
    'breast breasts bosom cleavage chest nipple nipples thigh thighs hip hips buttocks butt belly navel waist torso groin genitals skin naked nude topless bare undressed undresses undressing lingerie underwear bikini',
};
