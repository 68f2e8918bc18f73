/** Why a provider's person came back without a session, and what to do, in the reader's words. */
import { Alert } from '@mantine/core';
import { useSearch } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { useInfo } from '../../api/session.ts';
import type en from '../../texts/en/entry.ts';

type Problem = keyof typeof en.problem;

/** Codes of the gateway, of its sign-in library, and of providers (RFC 6749, section 4.1.2.1; OpenID Connect Core, section 3.1.2.6). */
const problems: Readonly<Record<Exclude<Problem, 'unknown'>, readonly string[]>> = {
  denied: ['access_denied', 'consent_required', 'interaction_required', 'login_required', 'account_selection_required'],
  expired: [
    'state_mismatch',
    'state_not_found',
    'state_invalid',
    'please_restart_the_process',
    'no_code',
    'no_callback_url',
    'invalid_callback_request',
    'saml_response_used',
    'nonce_binding_missing',
  ],
  down: ['provider_unreachable', 'temporarily_unavailable', 'server_error'],
  unusable: [
    'invalid_code',
    'saml_response',
    'unable_to_get_user_info',
    'issuer_mismatch',
    'issuer_missing',
    'oauth_provider_not_found',
    'invalid_request',
    'invalid_scope',
    'unauthorized_client',
    'unsupported_response_type',
  ],
  unverified: ['email_not_verified'],
  noMail: ['email_not_found', 'email_not_usable'],
  wrongDomain: ['wrong_domain'],
  otherProvider: ['other_provider', 'use_provider'],
  notLinked: ['account_not_linked', 'unable_to_link_account'],
  otherIdentity: ['other_identity'],
  notInvited: ['sign_up_not_allowed', 'signup_disabled'],
  blocked: ['blocked'],
  throttled: ['rate_limited'],
};

/** Texts that come with this page. */
const ofCompanies = { use_company: 'client.company.required', domain_lapsed: 'client.company.lapsed' } as const;
const isOfCompanies = (code: string): code is keyof typeof ofCompanies => Object.hasOwn(ofCompanies, code);

function problemOf(code: string): Problem {
  const found = Object.entries(problems).find(([, codes]) => codes.includes(code.toLowerCase()));
  return (found?.[0] ?? 'unknown') as Problem;
}

/** What the address says behind the code may be anybody's words, and is not shown. */
export function ProviderProblem() {
  const { t } = useTranslation();
  const gateway = useInfo()?.gateway ?? '';
  const { error } = useSearch({ strict: false }) as { error?: unknown };
  if (typeof error !== 'string' || error === '') return null;
  const reference = /^[a-z_]{1,40}$/i.test(error) ? error : '?';
  return (
    <Alert color="red" variant="light" role="alert" py="xs" data-testid="provider-problem">
      {isOfCompanies(error) ? t(ofCompanies[error]) : t(`entry.problem.${problemOf(error)}`, { gateway, reference })}
    </Alert>
  );
}
