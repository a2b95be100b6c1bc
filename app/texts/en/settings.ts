import { addTexts } from '../english';
import settings from './settings.json';

addTexts({ settings });
