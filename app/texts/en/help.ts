import { addTexts } from '../english';
import help from './help.json';

addTexts({ help });
