import { AdminClient } from '@nvidia-virtual/node-state/admin/client';
import type { AdminCalls } from '@nvidia-virtual/node-state/admin/messages';

/** One call of the gpu-proxy that serves the state directory. */
export async function askNode<Name extends keyof AdminCalls>(
  state: string,
  name: Name,
  request: AdminCalls[Name][0],
): Promise<AdminCalls[Name][1]> {
  const admin = await AdminClient.connect(state);
  try {
    return await admin.call(name, request);
  } finally {
    admin.close();
  }
}
