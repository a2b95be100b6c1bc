import type { LanguageWords } from './types';

export const fr: LanguageWords = {
  name: 'French',
  stopWords:
    'le la les l un une des du de d et ou mais à au aux en dans sur sous par pour avec vers chez entre derrière devant depuis pendant que qu qui quoi où quand comme ce cet cette ces il elle ils elles on se s son sa ses leur leurs lui y est sont était étaient être a ont avait fait très plus aussi encore puis alors tandis tout tous toute toutes chaque deux-ci nous vous je j tu mon ma mes c n m t',
  negations: 'ne|n|pas|sans|jamais|aucun|aucune|rien|personne ne|ni|évite|évitez|éviter',
  numbers:
    'deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dixsept dixhuit dixneuf vingt',
  directions: [
    ['gauche', 'droite'],
    ['haut', 'bas'],
    ['vers', 'loin'],
    ['avant', 'arrière'],
    ['monte|montent', 'descend|descendent'],
    ['sens horaire', 'sens antihoraire'],
  ],
  camera: 'caméra|camera',
  moves: {
    static: '(caméra|camera)~ (fixe|immobile|statique|stable)|plan fixe|trépied',
    zoom: 'zoom\\p{L}*|dézoom\\p{L}*',
    in: 'zoom\\p{L}* avant|travelling avant|caméra~ (avance|approche|rapproche)|gros plan progressif',
    out: 'zoom\\p{L}* arrière|travelling arrière|dézoom\\p{L}*|caméra~ (recule|éloigne)',
    pan: 'panoramique|panote|caméra~ (pivote|balaie)',
    tilt: 'caméra~ (incline|bascule)',
    orbit: 'caméra~ (tourne|orbite)|orbite',
    track: 'caméra~ (suit|accompagne)|plan de suivi',
    dolly: 'travelling',
    crane: 'caméra~ (monte|descend|élève)|plan de grue|drone',
    handheld: "caméra à l'épaule|caméra portée",
    move: 'caméra~ (bouge|glisse|déplace|flotte)',
  },
  motion:
    'lentement doucement légèrement calmement progressivement lent lente doux douce mouvement mouvements bouge bougent caméra reste demeure immobile fixe lumière ombre ombres scintille vacille brille ondule ondulent balance respire cligne tourne continue avance pas rythme naturel naturelle fluide cadre image plan',
  persons:
    'homme hommes femme femmes personne personnes gens fille filles garçon garçons enfant enfants bébé bébés dame dames couple couples foule ami amis amie amies inconnu silhouette mère père danseuse danseur',
  intimate:
    'sein seins poitrine décolleté cuisse cuisses hanche hanches fesse fesses ventre nombril taille torse peau nu nue nus nues déshabille lingerie sous-vêtements bikini',
};
