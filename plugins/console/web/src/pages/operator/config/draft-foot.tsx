/** Below an edited file: whether it is changed, discarding, and saving after a look at the difference. */
import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { askAgain } from '../../../api/again.ts';
import { send } from '../../../api/client.ts';
import { Waiting } from '../../../parts/states.tsx';
import { Act } from '../parts/act.tsx';
import type { ConfigCheck } from '../sale-types.ts';
import { Changes } from './check-result.tsx';
import { doneText } from './done-text.ts';
import type { Draft } from './drafts.ts';

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

const YamlDiff = lazy(() => import('./yaml-diff.tsx'));

interface SaveDialogProps {
  readonly name: string;
  /** The text that was edited; a save is refused where the file has another one by now. */
  readonly previous: string;
  readonly text: string;
  readonly check: ConfigCheck;
  readonly onClose: () => void;
}

function SaveDialog({ name, previous, text, check, onClose }: SaveDialogProps) {
  const { t } = useTranslation();
  const client = useQueryClient();
  return (
    <Act
      opened
      wide
      onClose={onClose}
      title={t('operator.config.reviewTitle', { name: name.split('/').at(-1) })}
      action={t('operator.config.saveNow')}
      act={async (reason) => {
        const done = await send<ConfigCheck>('POST', '/admin/config/save', { file: name, text, previous, reason });
        // Plans, prices and more may have changed; and until the saved text is loaded, the edit counts as unsaved.
        await askAgain(client, []);
        return doneText(done, t('operator.config.saved'), t);
      }}
    >
      <Suspense fallback={<Waiting height={240} />}>
        <YamlDiff before={previous} after={text} label={t('operator.config.diff')} />
      </Suspense>
      <Changes check={check} />
    </Act>
  );
}
