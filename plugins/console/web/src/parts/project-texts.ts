/** The English texts of projects come with the pages that show them; the other languages have them from the start. */
import i18next from 'i18next';
import projects from '../texts/en/projects.ts';

i18next.addResourceBundle('en', 'translation', { client: projects }, true);
