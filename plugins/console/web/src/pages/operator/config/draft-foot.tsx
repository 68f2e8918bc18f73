/** Below an edited file: whether it is changed, discarding, and saving after a look at the difference. */
import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Act } from '../parts/act.tsx';
import type { ConfigCheck } from '../sale-types.ts';
import type { Draft } from './drafts.ts';
import { SaveDialog } from './save-dialog.tsx';

export function Overtaken({ onTake }: { readonly onTake: () => void }) {
  const { t } = useTranslation();
  return (
    <Alert color="yellow" variant="light" icon={<IconAlertTriangle size={18} />} title={t('operator.config.overtaken')}>
      <Stack gap="xs" align="flex-start">
        {t('operator.config.overtakenHint')}
        <Button size="xs" variant="default" onClick={onTake}>
          {t('operator.config.takeTheirs')}
        </Button>
      </Stack>
    </Alert>
  );
}

interface DraftFootProps {
  readonly draft: Draft;
  readonly check: ConfigCheck | undefined;
  readonly busy: boolean;
  /** Text beside the state of the file. */
  readonly hint: string;
}

export function DraftFoot({ draft, check, busy, hint }: DraftFootProps) {
  const { t } = useTranslation();
  const [dialog, setDialog] = useState<'save' | 'discard'>();
  const { file, base, text, isChanged: changed, takeTheirs } = draft;
  const close = () => setDialog(undefined);
  const isFaulty = (check?.problems.length ?? 0) > 0;
  return (
    <Group justify="space-between" gap="xs">
      <Text fz="xs" c="dimmed">
        {changed ? t('operator.config.changed') : t('operator.config.unchanged')} · {hint}
      </Text>
      <Group gap="xs">
        <Button size="xs" variant="default" disabled={!changed} onClick={() => setDialog('discard')}>
          {t('operator.config.discard')}
        </Button>
        <Button
          size="xs"
          disabled={!changed || check === undefined || isFaulty || busy}
          onClick={() => setDialog('save')}
        >
          {t('operator.config.review')}
        </Button>
      </Group>
      {dialog === 'save' && check !== undefined && (
        <SaveDialog name={file.name} previous={base} text={text} check={check} onClose={close} />
      )}
      <Act
        opened={dialog === 'discard'}
        onClose={close}
        title={t('operator.config.discardTitle', { name: file.name })}
        text={t('operator.config.discardText')}
        action={t('operator.config.discard')}
        danger
        withReason={false}
        act={async () => {
          takeTheirs();
          return undefined;
        }}
      />
    </Group>
  );
}
