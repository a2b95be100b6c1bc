import { addTexts } from '../english';
import framing from './framing.json';

addTexts({ framing });
