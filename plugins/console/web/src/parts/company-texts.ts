/** The English texts of the sign-in of a company come with what shows them; the other languages have them from the start. */
import i18next from 'i18next';
import company from '../texts/en/company.ts';

i18next.addResourceBundle('en', 'translation', { client: company }, true);
