/** The same call for programs: curl, Python, JavaScript, with the key where the reader wants it. */
import { SegmentedControl, Stack, Switch } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { keyPlaceholder } from '../../../../../../../core/tools/client-programs.ts';
import { useMe } from '../../../api/session.ts';
import type { ApiCall } from '../../../calls/call.ts';
import { type CodeLanguage, codeLanguages, codeOf, languageNames } from '../../../calls/code.ts';
import { CodeBlock } from '../../../parts/code-block.tsx';
import { Panel } from '../../../parts/page.tsx';

interface AsCodeProps {
  /** undefined: there is nothing to be sent yet. */
  readonly call: ApiCall | undefined;
  /** The session's key; empty: there is none. */
  readonly apiKey: string;
}

export function AsCode({ call, apiKey }: AsCodeProps) {
  const { t } = useTranslation();
  const base = useMe().gateway.origin;
  const [language, setLanguage] = useState<CodeLanguage>('curl');
  const [withKey, setWithKey] = useState(false);
  if (call === undefined) return null;
  const key = withKey && apiKey !== '' ? apiKey : keyPlaceholder;
  return (
    <Panel title={t('client.playground.code')}>
      <Stack gap="xs">
        <SegmentedControl
          size="xs"
          fullWidth
          aria-label={t('client.playground.codeLanguage')}
          data={codeLanguages.map((value) => ({ value, label: languageNames[value] }))}
          value={language}
          onChange={(value) => setLanguage(value as CodeLanguage)}
        />
        <CodeBlock label={t('client.playground.code')} text={codeOf(language, call, { base, key })} />
        {apiKey !== '' && (
          <Switch
            size="xs"
            label={t('client.playground.withKey')}
            checked={withKey}
            onChange={({ currentTarget }) => setWithKey(currentTarget.checked)}
          />
        )}
      </Stack>
    </Panel>
  );
}
